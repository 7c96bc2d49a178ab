"""Slack: how much later activities could end without the job ending later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.output.plot.classes import CLASS_LABELS, class_axis, counts_of, used_classes
from htagraph.output.plot.style import COLORS, KIND_COLORS, drawn, nothing

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["slack"]

_GROUPS = {
    "computation": ("computation",), "communication": ("communication", "host_communication"), "memory": ("memory",),
    "host": (),
}  # fmt: skip
"""Kinds of activity by the name in the legend; all others belong to the host."""


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
    from plotly.graph_objects import Bar

    named = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}
    group = table["kind"].map(named).fillna("host")
    counts_by_name = {
        name: counts_of(table.loc[group == name, "slack_us"].to_numpy(np.float64)) for name in _GROUPS
    }  # fmt: skip
    shown = used_classes([*counts_by_name.values()])
    bars = []
    for name, counts in counts_by_name.items():
        if not counts.any():
            continue
        words = [
            f"{count:,} of kind {name}<br>slack {label if label in ('0', '< 1 µs') else f'of {label} or more'}"
            for label, count in zip(CLASS_LABELS[shown], counts[shown], strict=True)
        ]
        color = KIND_COLORS.get(name, COLORS["orange"])
        bars.append(Bar(name=name, x=CLASS_LABELS[shown], y=counts[shown], marker_color=color, hovertext=[
            word.replace("< ", "&lt; ") for word in words], hoverinfo="text"))  # fmt: skip
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
