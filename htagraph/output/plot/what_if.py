"""What-if: the job and its steps as recorded and as predicted, and predictions for many factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from htagraph.core.naming import short_name
from htagraph.core.words import check_choice
from htagraph.findings.phrases import CATEGORY_WORDS, group_words, time_text
from htagraph.output.plot.style import (
    AFTER,
    BEFORE,
    COLORS,
    GREY,
    NAME_LETTERS,
    axis_labels,
    drawn,
    hover_name,
    nothing,
    plain,
    row_labels,
    time_unit,
)

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from htagraph.analyses.differences.diff import Diff
    from htagraph.whatif.outcome import Outcome

__all__ = ["diff", "opportunities", "sweep", "what_if"]

_MAX_BARS = 40
"""Steps that are pairs of bars. Chosen: they are 6 pixels wide at 700; more are two lines. Doubled, they are 3 wide."""
_LEAST_CHANGE = 0.005
"""Share of the job that a sweep must change to be called a change. Chosen: runs of one job differ by as much. Doubled,
changes of 0.5 to 1 % are called none."""
_MAX_NOTES = 2
"""Notes on the prediction below the title; chosen: they are the most important. Doubled, they push the figure down."""
_ROWS = 12
"""Contributions that are drawn apart, the largest; all others are one. Chosen: they fit a screen without scrolling.
Doubled, most rows are too small to see."""
_NONE = "none"
"""What `Diff.summary` calls time that belongs to no operator, kernel or module."""
_ROOM = 0.08
"""Share of the axis beyond both ends. Chosen; doubled, the changes are smaller."""
_OPPORTUNITIES = 25
"""Opportunities that are drawn, the largest. Chosen: they fit a screen. Doubled, one scrolls."""


def what_if(outcome: Outcome) -> Figure:
    """Return the figure of a prediction: the whole job with its interval, and each step, recorded and predicted.

    Args:
        outcome: result of `Scenario.run`.

    Returns:
        The figure, not shown; its axes are in µs, ms or s. The whisker is the 90 % interval of the makespan.

    Example:
        >>> import htagraph as hg
        >>> outcome = hg.what_if(hg.load("data/demo")).scale(factor=0.5, kind="computation").run()
        >>> [trace.name for trace in hg.plot.what_if(outcome).data][:2]
        ['recorded', 'predicted']
    """
    what = " · ".join(outcome.changes) or "nothing changed"
    notes = " ".join(f"Note: {note}." for note in outcome.notes[:_MAX_NOTES])
    about = f"Predicted by replaying the recorded dependencies with: {what}. {notes}"
    before, after = outcome.baseline_ns / 1000, outcome.makespan_ns / 1000
    if not before:
        return nothing("No work was recorded: there is nothing to predict", about)
    factor, unit = time_unit(max(before, after))
    steps = outcome.step_times().groupby("step").agg(
        begin=("start_us", "min"), end=("end_us", "max"), new_begin=("predicted_start_us", "min"),
        new_end=("predicted_end_us", "max"),
    )  # fmt: skip
    domain = [0.78, 1.0] if len(steps) else [0.0, 1.0]
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": f"whole job ({unit})"}, "anchor": "y", "rangemode": "tozero"},
        "yaxis": {"domain": domain, "anchor": "x", "showgrid": False, "autorange": "reversed"},
    }
    traces = _whole(outcome, before / factor, after / factor, unit)
    if len(steps):
        more, layout["yaxis2"] = _steps(steps)
        traces += more
        layout["xaxis2"] = {"anchor": "y2", "type": "category", "title": {"text": "step"}, "showgrid": False}
        layout["yaxis2"] |= {"domain": [0.0, 0.56], "anchor": "x2", "rangemode": "tozero"}
    return drawn(
        traces, _finding(outcome), about, height=440 if len(steps) else 180, barmode="group", bargap=0.25,
        showlegend=bool(len(steps)), **layout,
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    before, after = outcome.baseline_ns / 1000, outcome.makespan_ns / 1000
    times = f"{time_text(before)} → {time_text(after)}"
    if not after:
        return f"Nothing that takes time is left: {times}"
    speed = f"{outcome.speedup:.2f} times as fast"
    if math.isclose(outcome.low, outcome.high):
        return f"The job would be {speed}: {times}"
    return f"The job would be {speed} (90 %: {outcome.low:.2f} to {outcome.high:.2f}): {times}"


def _whole(outcome: Outcome, before: float, after: float, unit: str) -> list[Any]:
    from plotly.graph_objects import Bar

    ends = [before / end if end else after for end in (outcome.high, outcome.low)]
    whisker = {
        "type": "data", "symmetric": False, "array": [max(ends[1] - after, 0.0)],
        "arrayminus": [max(after - ends[0], 0.0)], "color": GREY, "thickness": 2, "width": 6,
    }  # fmt: skip
    words = f"predicted: {after:.4g} {unit}<br>90 % interval: {ends[0]:.4g} to {ends[1]:.4g} {unit}"
    return [
        Bar(name="recorded", x=[before], y=["recorded"], orientation="h", marker_color=BEFORE, showlegend=False,
            hovertext=[f"recorded: {before:.4g} {unit}"], hoverinfo="text", offsetgroup="whole"),
        Bar(name="predicted", x=[after], y=["predicted"], orientation="h", marker_color=AFTER, error_x=whisker,
            showlegend=False, hovertext=[words], hoverinfo="text", offsetgroup="whole"),
    ]  # fmt: skip


def _steps(steps: pd.DataFrame) -> tuple[list[Any], dict[str, Any]]:
    """Return traces of the steps' times and their axis."""
    from plotly.graph_objects import Bar, Scatter

    times = {"recorded": steps["end"] - steps["begin"], "predicted": steps["new_end"] - steps["new_begin"]}
    factor, unit = time_unit(float(max(each.max() for each in times.values())))
    names = [str(step) for step in steps.index]
    traces: list[Any] = []
    for (what, lengths), color in zip(times.items(), (BEFORE, AFTER), strict=True):
        words = [f"step {name}, {what}: {time_text(us)}" for name, us in zip(names, lengths, strict=True)]
        common: dict[str, Any] = {
            "name": what, "x": names, "y": (lengths / factor).to_numpy(), "hovertext": words, "hoverinfo": "text",
            "xaxis": "x2", "yaxis": "y2",
        }  # fmt: skip
        if len(steps) <= _MAX_BARS:
            traces.append(Bar(**common, marker_color=color, offsetgroup=what))
        else:
            traces.append(Scatter(**common, mode="lines", line={"color": color}))
    return traces, {"title": {"text": f"from first begin<br>to last end ({unit})"}}


def sweep(table: pd.DataFrame) -> Figure:
    """Return the figure of a sweep: the predicted time of the job for each factor, as a curve.

    Args:
        table: result of `htagraph.sweep`.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. A band is the 90 % interval, if the table has it.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> table = hg.sweep(graph, lambda job, factor: job.scale(factor=factor, kind="computation"), [1.0, 0.5, 0.0])
        >>> [trace.name for trace in hg.plot.sweep(table).data]
        ['predicted', 'recorded']
    """
    intervals = "The band is the 90 % interval." if "low" in table else "No intervals were asked for."
    about = f"Predicted time of the job by factor; the scenario says what the factor means. {intervals}"
    if not len(table):
        return nothing("There are no factors", about)
    from plotly.graph_objects import Scatter

    table = table.sort_values("factor", kind="stable")
    recorded = float(table["makespan_us"].iloc[0] + table["saved_us"].iloc[0])
    factor, unit = time_unit(max(recorded, float(table["makespan_us"].max())))
    words = [
        f"factor {row['factor']:g}: {time_text(row['makespan_us'])}, {row['speedup']:.2f} times as fast"
        for row in table.to_dict("records")
    ]
    best = table.iloc[int(table["makespan_us"].to_numpy().argmin())]
    curve = Scatter(
        name="predicted", x=table["factor"].to_numpy(), y=(table["makespan_us"] / factor).to_numpy(),
        mode="lines+markers", line={"color": AFTER}, hovertext=words, hoverinfo="text",
    )  # fmt: skip
    ends = [float(table["factor"].min()), float(table["factor"].max())]
    line = Scatter(
        name="recorded", x=ends, y=[recorded / factor] * 2, mode="lines", line={"color": GREY, "dash": "dash"},
        hovertext=[f"recorded: {time_text(recorded)}"] * 2, hoverinfo="text",
    )  # fmt: skip
    changes = table["saved_us"].abs().max() >= _LEAST_CHANGE * recorded
    finding = f"None of these factors changes the job's {time_text(recorded)} by {100 * _LEAST_CHANGE:g} % or more"
    finding = (
        finding
        if not changes
        else (
            f"Of these factors, {best['factor']:g} is the fastest: {time_text(float(best['makespan_us']))}, "
            f"{best['speedup']:.2f} times as fast as recorded"
        )
    )
    axis = {"title": {"text": f"whole job ({unit})"}, "rangemode": "tozero"}
    traces = [*_band(table, recorded, factor), curve, line]
    return drawn(traces, finding, about, xaxis={"title": {"text": "factor"}}, yaxis=axis, showlegend=True)


def _band(table: pd.DataFrame, recorded: float, factor: float) -> list[Any]:
    """Return the area between both ends of the intervals; nothing where none were asked for."""
    from plotly.graph_objects import Scatter

    if "low" not in table:
        return []
    x, ends = table["factor"].to_numpy(), [(recorded / table[end] / factor).to_numpy() for end in ("high", "low")]
    common: dict[str, Any] = {"x": x, "mode": "lines", "line": {"width": 0, "color": AFTER}, "hoverinfo": "skip"}
    return [
        Scatter(**common, y=ends[0], showlegend=False),
        Scatter(**common, y=ends[1], name="90 % interval", fill="tonexty"),
    ]


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


def opportunities(table: pd.DataFrame) -> Figure:
    """Return the figure of what could be gained: bars from the recorded time back, each below its ceiling.

    Args:
        table: result of `htagraph.opportunities`.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. The bar is the gain if something took no time, its mark the
        gain if it took half of its time, and the pale bar behind it its time on the critical path.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.opportunities(hg.opportunities(hg.load("data/demo")))
        >>> [trace.name for trace in figure.data]
        ['time on the critical path', 'gain if it took no time', 'gain if it took half']
    """
    about = "Each gain is a replay of its own; they overlap and do not add up."
    if not len(table):
        return nothing("Nothing that could be changed is on the critical path", about)
    from plotly.graph_objects import Bar, Scatter

    shown = table.head(_OPPORTUNITIES)
    names = [_words(str(row["what"]), str(row["name"])) for row in shown.to_dict("records")]
    ticks = row_labels(names)
    factor, unit = time_unit(float(shown[["gain_us", "critical_us"]].to_numpy().max()))
    hover = [_gain_hover(row) for row in shown.to_dict("records")]
    rows = list(range(len(shown)))
    traces: list[Any] = [
        Bar(name="time on the critical path", x=(shown["critical_us"] / factor).to_numpy(), y=rows, orientation="h",
            marker_color=BEFORE, hovertext=hover, hoverinfo="text", width=0.8),
        Bar(name="gain if it took no time", x=(shown["gain_us"] / factor).to_numpy(), y=rows, orientation="h",
            marker_color=AFTER, hovertext=hover, hoverinfo="text", width=0.5),
    ]  # fmt: skip
    if "gain_at_50_us" in shown:
        traces.append(
            Scatter(
                name="gain if it took half", x=(shown["gain_at_50_us"] / factor).to_numpy(), y=rows, mode="markers",
                marker={"symbol": "line-ns", "size": 14, "line": {"width": 3, "color": COLORS["orange"]}},
                hovertext=hover, hoverinfo="text",
            )
        )  # fmt: skip
    first = shown.iloc[0]
    name = plain(names[0], NAME_LETTERS)
    finding = (
        f"Largest gain: {time_text(float(first['gain_us']))} ({first['gain_percent']:.0f} % of the job) if "
        f"{name} took no time"
    )
    return drawn(
        traces, finding, about, height=110 + 30 * len(shown), barmode="overlay", showlegend=True,
        xaxis={"title": {"text": f"of the whole job ({unit})"}, "rangemode": "tozero"},
        yaxis={"tickvals": rows, "ticktext": ticks, "range": [len(shown) - 0.5, -0.5], "showgrid": False},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )  # fmt: skip


def _words(what: str, name: str) -> str:
    """Return what a row is about: names of phases and ranks say it already."""
    if what == "group":
        return f"transfers of {group_words(plain(name))}"
    if what == "straggler":
        return f"what {plain(name)} takes"
    short = plain(short_name(name) if what == "kernel" else name)
    return short if what in ("rank", "phase") else f"{what} {short}"


def _gain_hover(row: dict[Any, Any]) -> str:
    lines = [
        hover_name(str(row["name"])),
        f"gain if it took no time: {time_text(row['gain_us'])}, {row['gain_percent']:.1f} % of the job",
        f"on the critical path: {time_text(row['critical_us'])}; its own time, all ranks: {time_text(row['time_us'])}",
    ]
    lines += [f"note: {hover_name(str(row['note']))}"] if row.get("note") else []
    lines += [f"inside: {hover_name(str(row['inside']))}"] if row.get("inside") else []
    return "<br>".join(lines)
