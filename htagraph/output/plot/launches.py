"""How long launch calls take, and how much later the work starts that they enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.output.phrases import plural, time_text
from htagraph.output.plot.classes import CLASS_LABELS, counts_of
from htagraph.output.plot.style import COLORS, KIND_COLORS, drawn, nothing

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["launch_stats"]


def launch_stats(table: pd.DataFrame) -> Figure:
    """Return the figure of launch delays and of the lengths of launch calls: two histograms over all ranks.

    Args:
        table: result of `htagraph.launch_stats`.

    Returns:
        The figure, not shown. Classes of time are half a decade wide, from 0 and less than 1 µs upwards.

    Example:
        >>> import htagraph as hg
        >>> table = hg.launch_stats(hg.load("data/demo"))
        >>> figure = hg.plot.launch_stats(table)
        >>> sum(int(bar.y.sum()) for bar in figure.data if bar.xaxis == "x") == len(table)
        True
    """
    about = "Top: from the end of the launch call to the start of its work. Bottom: how long the launch calls take."
    if not len(table):
        return nothing("No launch of device work was recorded", about)
    from plotly.graph_objects import Bar

    calls = table.drop_duplicates("launch")
    kinds = table["work_kind"].value_counts()
    bars = [
        _bars(Bar, kind, table.loc[table["work_kind"] == kind, "delay_us"].to_numpy(), "x", "y") for kind in kinds.index
    ]
    bars.append(_bars(Bar, "launch calls", calls["launch_us"].to_numpy(), "x2", "y2"))
    middle, worst = float(table["delay_us"].median()), float(table["delay_us"].max())
    finding = (
        f"Half of {plural(len(table), 'kernel')} and copies start within {time_text(middle)} of their launch, "
        f"the latest after {time_text(worst)}"
    )
    axis = {"type": "category", "categoryorder": "array", "categoryarray": CLASS_LABELS, "tickangle": -45}
    return drawn(
        bars, finding, about, height=520, barmode="stack", bargap=0.1, showlegend=True,
        xaxis={**axis, "anchor": "y", "title": {"text": "delay, at least"}},
        yaxis={"domain": [0.62, 1.0], "title": {"text": "kernels and copies"}, "anchor": "x"},
        xaxis2={**axis, "anchor": "y2", "title": {"text": "length of the call, at least"}},
        yaxis2={"domain": [0.0, 0.36], "title": {"text": "launch calls"}, "anchor": "x2"},
    )  # fmt: skip


def _bars(bar: type[Bar], kind: str, times: npt.NDArray[np.float64], x: str, y: str) -> Bar:
    counts = counts_of(times)
    words = [f"{count:,} {kind}<br>{label} or more" for label, count in zip(CLASS_LABELS, counts, strict=True)]
    color = KIND_COLORS.get(kind, COLORS["yellow"])
    return bar(
        name=kind.replace("_", " "), x=CLASS_LABELS, y=counts, marker_color=color, hovertext=words, hoverinfo="text",
        xaxis=x, yaxis=y,
    )  # fmt: skip


if TYPE_CHECKING:
    from plotly.graph_objects import Bar
