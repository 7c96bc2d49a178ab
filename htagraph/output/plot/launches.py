"""Histograms of time: how long launch calls take, how much later their work starts, and how much slack there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.findings.phrases import plural, time_text
from htagraph.output.plot import style
from htagraph.output.scene import COLORS, KIND_COLORS

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["launch_stats", "slack"]

_BOUNDS_US = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
"""Lower ends, µs. Chosen: half a decade, so that all of them have a label of their own at a width of 700 pixels."""
CLASS_LABELS = [
    "0", "< 1 µs", "1 µs", "3 µs", "10 µs", "30 µs", "100 µs", "300 µs", "1 ms", "3 ms", "10 ms", "30 ms", "100 ms",
    "300 ms", "1 s",
]  # fmt: skip
"""Of the classes: what belongs to them is at least that long."""
_GROUPS = {
    "computation": "computation", "communication": "communication", "host_communication": "communication",
    "memory": "memory",
}  # fmt: skip
"""Names in the legend by kind of activity; all others belong to the host."""


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
        return style.nothing("No launch of device work was recorded", about)
    of_calls = counts_of(table.drop_duplicates("launch")["launch_us"].to_numpy())
    of_kinds = {
        kind: counts_of(table.loc[table["work_kind"] == kind, "delay_us"].to_numpy())
        for kind in table["work_kind"].value_counts().index
    }
    shown = used_classes([*of_kinds.values(), of_calls])  # the same for both, so that they can be compared
    bars = [_bars(kind, counts, shown, KIND_COLORS.get(kind, COLORS["yellow"])) for kind, counts in of_kinds.items()]
    above = [bar | {"xaxis": "x", "yaxis": "y"} for bar in bars]
    below = _bars("launch calls", of_calls, shown, COLORS["yellow"]) | {"xaxis": "x2", "yaxis": "y2"}
    finding = (
        f"Half of {plural(len(table), 'kernel')} and copies start within {time_text(table['delay_us'].median())} of "
        f"their launch, the latest after {time_text(table['delay_us'].max())}"
    )
    return style.drawn(
        [*above, below], finding, about, height=520, barmode="stack", bargap=0.1, showlegend=True,
        xaxis=_axis("delay, at least", shown) | {"anchor": "y"},
        yaxis={"domain": [0.62, 1.0], "title": "kernels and copies", "anchor": "x"},
        xaxis2=_axis("length of the call, at least", shown) | {"anchor": "y2"},
        yaxis2={"domain": [0.0, 0.36], "title": "launch calls", "anchor": "x2"},
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
        return style.nothing("No activity that does work was recorded", about)
    group = table["kind"].map(_GROUPS).fillna("host")
    counts = {
        name: counts_of(table.loc[group == name, "slack_us"].to_numpy(np.float64))
        for name in (*dict.fromkeys(_GROUPS.values()), "host")
    }
    shown = used_classes([*counts.values()])
    bars = [
        _bars(f"of kind {name}", each, shown, KIND_COLORS[name], "slack") | {"name": name}
        for name, each in counts.items()
        if each.any()
    ]
    none = int((table["slack_us"] <= 0).sum())
    finding = (
        f"{none:,} of {len(table):,} activities have no slack: if one of them ends later, so does the job"
        if none
        else f"Each of {len(table):,} activities has some slack"
    )
    return style.drawn(
        bars, finding, about, barmode="stack", bargap=0.1, showlegend=True, xaxis=_axis("slack, at least", shown),
        yaxis_title="activities",
    )  # fmt: skip


def _bars(what: str, counts: npt.NDArray[np.int64], shown: slice, color: str, of: str = "") -> dict[str, Any]:
    """Return a histogram of what is counted by class; `of` is what the times are, where the axis does not say it."""
    labels = CLASS_LABELS[shown]
    hover: list[str] = []
    for label, count in zip(labels, counts[shown], strict=True):
        exact = label == "0" or label.startswith("<")
        length = style.escaped(label) if exact else f"{label} or more"
        words = f"{of} {'' if exact else 'of '}{length}" if of else length
        hover.append(f"{count:,} {what}<br>{words}")
    return {
        "type": "bar", "name": what.replace("_", " "), "x": labels, "y": counts[shown], "marker_color": color,
        "hovertext": hover, "hoverinfo": "text",
    }  # fmt: skip


def counts_of(times: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many times, in µs, fall into each class; what is below 0 counts as 0.

    Example:
        >>> counts_of(np.array([0.0, 0.5, 1.0, 2.9, 5e6])).tolist()
        [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    place = np.where(times <= 0, 0, 1 + np.searchsorted(_BOUNDS_US, times, side="right"))
    return np.bincount(place.astype(np.int64), minlength=len(CLASS_LABELS)).astype(np.int64)


def used_classes(counts: Sequence[npt.NDArray[np.int64]]) -> slice:
    """Return the classes from the first to the last one that one of several histograms has something in.

    Example:
        >>> used_classes([counts_of(np.array([2.0])), counts_of(np.array([40.0]))])
        slice(2, 6, None)
    """
    used = np.flatnonzero(np.sum(counts, axis=0)) if len(counts) else np.zeros(0, np.int64)
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)


def _axis(title: str, shown: slice) -> dict[str, Any]:
    """Return an axis of classes, in their order."""
    return {"type": "category", "categoryorder": "array", "categoryarray": CLASS_LABELS[shown], "title": title}
