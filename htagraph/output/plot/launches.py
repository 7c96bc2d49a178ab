"""Histograms of time: how long launch calls take, how much later their work starts, and how much slack there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.findings.phrases import plural, time_text
from htagraph.output.plot.raster import CLASS_LABELS, class_axis, counts_of, used_classes
from htagraph.output.plot.style import COLORS, KIND_COLORS, drawn, nothing

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Bar, Figure

__all__ = ["launch_stats", "slack"]

_GROUPS = {
    "computation": ("computation",), "communication": ("communication", "host_communication"), "memory": ("memory",),
    "host": (),
}  # fmt: skip
"""Kinds of activity by the name in the legend; all others belong to the host."""


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
    calls = table.drop_duplicates("launch")
    kinds = table["work_kind"].value_counts()
    of_kinds = {kind: counts_of(table.loc[table["work_kind"] == kind, "delay_us"].to_numpy()) for kind in kinds.index}
    of_calls = counts_of(calls["launch_us"].to_numpy())
    shown = used_classes([*of_kinds.values(), of_calls])  # the same for both, so that they can be compared
    bars = [
        _bars(kind, counts, shown, "", KIND_COLORS.get(kind, COLORS["yellow"])).update(xaxis="x", yaxis="y")
        for kind, counts in of_kinds.items()
    ]
    bars.append(_bars("launch calls", of_calls, shown, "", COLORS["yellow"]).update(xaxis="x2", yaxis="y2"))
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


def slack(table: pd.DataFrame) -> Figure:
    """Return the figure of how many activities have how much slack: a histogram by kind.

    Args:
        table: result of `htagraph.slack`.

    Returns:
        The figure, not shown. Classes of slack are half a decade wide, from 0 and less than 1 µs upwards.

    Example:
        >>> import htagraph as hg
        >>> table = hg.slack(hg.load("data/demo"))
        >>> sum(int(bar.y.sum()) for bar in hg.plot.slack(table).data) == len(table)
        True
    """
    about = "Activities by slack: how much later each may end without the job ending later."
    if not len(table):
        return nothing("No activity that does work was recorded", about)
    named = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}
    group = table["kind"].map(named).fillna("host")
    counts_by_name = {
        name: counts_of(table.loc[group == name, "slack_us"].to_numpy(np.float64)) for name in _GROUPS
    }  # fmt: skip
    shown = used_classes([*counts_by_name.values()])
    bars = [
        _bars(f"of kind {name}", counts, shown, "slack", KIND_COLORS.get(name, COLORS["orange"])).update(name=name)
        for name, counts in counts_by_name.items()
        if counts.any()
    ]
    none = int((table["slack_us"] <= 0).sum())
    finding = (
        f"{none:,} of {len(table):,} activities have no slack: if one of them ends later, so does the job"
        if none
        else f"Each of {len(table):,} activities has some slack"
    )
    return drawn(
        bars, finding, about, barmode="stack", bargap=0.1, showlegend=True,
        xaxis=class_axis("slack, at least", shown),
        yaxis={"title": {"text": "activities"}},
    )  # fmt: skip


def _bars(what: str, counts: npt.NDArray[np.int64], shown: slice, of: str, color: str) -> Bar:
    """Return a histogram of classes of time.

    Args:
        what: what is counted.
        counts: by class.
        shown: the classes that are drawn.
        of: what the times are, for where one points; empty where the axis says it.
        color: of the bars.
    """
    from plotly.graph_objects import Bar

    labels, counts = CLASS_LABELS[shown], counts[shown]
    ends = [(label.replace("<", "&lt;"), "<" in label or label == "0") for label in labels]
    words = [
        f"{of} {label}"
        if of and exact
        else f"{of} of {label} or more"
        if of
        else label
        if exact
        else f"{label} or more"
        for label, exact in ends
    ]
    hover = [f"{count:,} {what}<br>{word}" for count, word in zip(counts, words, strict=True)]
    return Bar(name=what.replace("_", " "), x=labels, y=counts, marker_color=color, hovertext=hover, hoverinfo="text")
