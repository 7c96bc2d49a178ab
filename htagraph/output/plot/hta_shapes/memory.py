"""The figure of HTA's memory analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.trace.profiler_files.memory_timeline import CATEGORIES

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["memory_categories"]

_GIB = 1024**3  # bytes
_US_PER_MS = 1000  # µs


def memory_categories(timeline: pd.DataFrame) -> Figure:
    """Return the figure of what memory was used for: areas by category over time.

    Args:
        timeline: what `htagraph.memory.read_timeline` gave.
    """
    import plotly.graph_objects as go
    from plotly.colors import qualitative

    figure = go.Figure()
    for category, color in zip(CATEGORIES, qualitative.Pastel, strict=False):
        figure.add_trace(
            go.Scatter(
                x=timeline["time_us"] / _US_PER_MS, y=timeline[f"{category}_bytes"] / _GIB, name=_words(category),
                mode="lines", line={"color": color, "shape": "hv"}, stackgroup="memory",
            )
        )  # fmt: skip
    return _titled(figure, "What memory is used for")


def _words(category: str) -> str:
    return category.replace("_", " ").capitalize()


def _titled(figure: Figure, title: str) -> Figure:
    return figure.update_layout(title_text=title, title_x=0.5, xaxis_title="Time (ms)", yaxis_title="Memory (GiB)")
