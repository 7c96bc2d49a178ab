"""How long launch calls take, and how much later the work starts that they enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.findings.phrases import plural, time_text
from htagraph.output.plot.classes import CLASS_LABELS, class_axis, counts_of, used_classes
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
    of_kinds = {kind: counts_of(table.loc[table["work_kind"] == kind, "delay_us"].to_numpy()) for kind in kinds.index}
    of_calls = counts_of(calls["launch_us"].to_numpy())
    shown = used_classes([*of_kinds.values(), of_calls])  # the same for both, so that they can be compared
    bars = [_bars(Bar, kind, counts, shown, "") for kind, counts in of_kinds.items()]
    bars.append(_bars(Bar, "launch calls", of_calls, shown, "2"))
    middle, worst = float(table["delay_us"].median()), float(table["delay_us"].max())
    finding = (
        f"Half of {plural(len(table), 'kernel')} and copies start within {time_text(middle)} of their launch, "
        f"the latest after {time_text(worst)}"
    )
    return drawn(
        bars, finding, about, height=520, barmode="stack", bargap=0.1, showlegend=True,
        xaxis=class_axis("delay, at least", shown) | {"anchor": "y"},
        yaxis={"domain": [0.62, 1.0], "title": {"text": "kernels and copies"}, "anchor": "x"},
        xaxis2=class_axis("length of the call, at least", shown) | {"anchor": "y2"},
        yaxis2={"domain": [0.0, 0.36], "title": {"text": "launch calls"}, "anchor": "x2"},
    )  # fmt: skip


def _bars(bar: type[Bar], kind: str, counts: npt.NDArray[np.int64], shown: slice, axes: str) -> Bar:
    labels, counts = CLASS_LABELS[shown], counts[shown]
    words = [
        f"{count:,} {kind}<br>{label.replace('<', '&lt;')}{'' if '<' in label or label == '0' else ' or more'}"
        for label, count in zip(labels, counts, strict=True)
    ]
    color = KIND_COLORS.get(kind, COLORS["yellow"])
    return bar(
        name=kind.replace("_", " "), x=labels, y=counts, marker_color=color, hovertext=words, hoverinfo="text",
        xaxis=f"x{axes}", yaxis=f"y{axes}",
    )  # fmt: skip


if TYPE_CHECKING:
    from plotly.graph_objects import Bar
