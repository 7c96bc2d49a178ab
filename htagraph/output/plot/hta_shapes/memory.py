"""Figures of memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.trace.profiler_files.memory_timeline import CATEGORIES

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from htagraph.trace.profiler_files.memory_snapshot import MemorySnapshot

__all__ = ["memory_categories", "memory_in_use", "memory_timeline"]

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


def memory_timeline(timeline: pd.DataFrame) -> Figure:
    """Return the figure of memory in use and reserved by device.

    Args:
        timeline: what `htagraph.memory.timeline` gave.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for (rank, device), rows in timeline.groupby(["rank", "device"], sort=False):
        for column, dash in (("allocated_bytes", "solid"), ("reserved_bytes", "dot")):
            figure.add_trace(
                go.Scatter(
                    x=rows["time_us"] / _US_PER_MS, y=rows[column] / _GIB, mode="lines", text=rows["name"],
                    name=f"rank {rank} {device} {column.removesuffix('_bytes')}", line={"shape": "hv", "dash": dash},
                )
            )  # fmt: skip
    return _titled(figure, "Memory in use")


def memory_in_use(snapshot: MemorySnapshot) -> Figure:
    """Return the figure of what was requested and in use over the recorded history, by device.

    Args:
        snapshot: what `htagraph.memory.read_snapshot` gave.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for device, rows in snapshot.events.groupby("device"):
        figure.add_trace(
            go.Scatter(
                x=rows["time_us"] / _US_PER_MS, y=rows["allocated_bytes"] / _GIB, mode="lines",
                name=f"device {device}", line={"shape": "hv"},
            )
        )  # fmt: skip
    return _titled(figure, "Memory in use")


def _words(category: str) -> str:
    return category.replace("_", " ").capitalize()


def _titled(figure: Figure, title: str) -> Figure:
    return figure.update_layout(title_text=title, title_x=0.5, xaxis_title="Time (ms)", yaxis_title="Memory (GiB)")
