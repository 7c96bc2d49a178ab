"""The difference of two jobs as a waterfall, which leads from the step time before to the one after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from htagraph.core.choices import check_choice
from htagraph.findings.phrases import CATEGORY_WORDS, time_text
from htagraph.output.plot.labels import axis_labels, hover_name
from htagraph.output.plot.style import COLORS, GREY, drawn, nothing, time_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.analyses.differences.diff import Diff

__all__ = ["diff"]

_ROWS = 12
"""Contributions that are drawn apart, the largest; all others are one. Chosen: they fit a screen without scrolling.
Doubled, most rows are too small to see."""
_NONE = "none"
"""What `Diff.summary` calls time that belongs to no operator, kernel or module."""
_ROOM = 0.08
"""Share of the axis beyond both ends. Chosen; doubled, the changes are smaller."""


def diff(
    result: Diff, *, by: Literal["rank", "category", "edge", "operator", "kernel", "module"] = "operator"
) -> Figure:
    """Return the figure of a difference: a waterfall from the time before to the time after, per step.

    Args:
        result: result of `htagraph.diff`.
        by: what the change is divided by; see `Diff.summary`.

    Returns:
        The figure, not shown; its axis, which does not begin at 0, is in µs, ms or s. The contributions, the largest
        first and all small ones as one, sum to the change.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> (waterfall,) = hg.plot.diff(hg.diff(graph, graph)).data
        >>> waterfall.measure[0], waterfall.measure[-1]
        ('absolute', 'total')
    """
    check_choice("by", by, ("rank", "category", "edge", "operator", "kernel", "module"))
    finding = result.sentences()[0].rstrip(".")
    about = f"Time on the critical path per {result.unit}, by {by}: from before to after, bars sum to the change."
    if not result.before_us and not result.after_us:
        return nothing(finding, about)
    from plotly.graph_objects import Waterfall

    rows = result.summary()
    rows = rows[(rows["group"] == by) & (rows["change_us"] != 0)]
    large = rows.head(_ROWS)
    rest = result.change_us - float(large["change_us"].sum())
    several = len(rows) - len(large)
    keys = [str(key) for key in large["key"]]
    names = ["before", *_labels(keys, by)]
    changes = [result.before_us, *large["change_us"].tolist()]
    hover = [f"before: {time_text(result.before_us)}"]
    hover += [_hover(row) for row in large.to_dict("records")]
    if several:
        names.append(f"{several:,} smaller ones")
        changes.append(rest)
        hover.append(f"{several:,} smaller ones: {_signed(rest)}")
    names.append("after")
    hover.append(f"after: {time_text(result.after_us)}")
    levels = [result.before_us]
    for change in changes[1:]:
        levels.append(levels[-1] + change)
    low, high = min(*levels, result.after_us), max(*levels, result.after_us)
    factor, unit = time_unit(high)
    room = _ROOM * (high - low) or _ROOM * high
    waterfall = Waterfall(
        orientation="h", y=list(range(len(names))), x=[*(each / factor for each in changes), None],
        measure=["absolute", *["relative"] * (len(names) - 2), "total"], hovertext=hover, hoverinfo="text",
        connector={"line": {"color": GREY, "width": 1}}, increasing={"marker": {"color": COLORS["vermillion"]}},
        decreasing={"marker": {"color": COLORS["blue"]}}, totals={"marker": {"color": COLORS["light"]}},
        text=["", *(_signed(each) for each in changes[1:]), ""], textposition="none",
    )  # fmt: skip
    return drawn(
        [waterfall], finding, f"{about} The axis does not begin at 0.", height=110 + 26 * len(names), showlegend=False,
        xaxis={
            "title": {"text": f"{result.unit} time ({unit})"}, "range": [(low - room) / factor, (high + room) / factor],
        },
        yaxis={
            "tickvals": list(range(len(names))), "ticktext": names, "range": [len(names) - 0.5, -0.5],
            "showgrid": False,
        },
    )  # fmt: skip


def _labels(keys: list[str], by: str) -> list[str]:
    """Return a label for each row."""
    if by == "category":
        return [CATEGORY_WORDS.get(key, key) for key in keys]
    if by == "rank":
        return [f"rank {key}" for key in keys]
    labels = axis_labels(keys)
    return [f"outside all {by}s" if key == _NONE else labels[key] for key in keys]


def _hover(row: dict[Any, Any]) -> str:
    times = f"{time_text(row['before_us'])} → {time_text(row['after_us'])}"
    return f"{hover_name(str(row['key']))}<br>{_signed(row['change_us'])}: {times} per step, on the critical path"


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else ''}{time_text(us)}"
