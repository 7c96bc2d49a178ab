"""What-if: the job and its steps as recorded and as predicted, and predictions for many factors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.naming import short_name, sibling_names
from htagraph.findings.limits import ROUNDING
from htagraph.findings.phrases import CATEGORY_WORDS, group_words, time_text
from htagraph.output.plot import style
from htagraph.output.reports.changes import by_step
from htagraph.output.scene import COLORS
from htagraph.whatif.outcome import Outcome

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.analyses.differences.diff import Diff
    from htagraph.findings.plan import BestChanges
    from htagraph.whatif.capacity import Capacity

__all__ = ["capacity", "diff", "opportunities", "plan", "sweep", "what_if"]

_ROWS = 12
"""Contributions that are drawn apart, the largest; all others are one. Chosen: they fit a screen without scrolling.
Doubled, most rows are too small to see."""


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
    notes = " ".join(f"Note: {note}." for note in outcome.notes[:2])  # the most important
    about = f"Predicted by replaying the recorded dependencies with: {what}. {notes}"
    before, after = outcome.baseline_ns / 1000, outcome.makespan_ns / 1000
    if not before:
        return style.nothing("No work was recorded: there is nothing to predict", about)
    factor, unit = style.time_unit(max(before, after))
    traces = _whole(outcome, before / factor, after / factor, unit)
    whole = {"title": f"whole job ({unit})", "anchor": "y", "rangemode": "tozero"}
    axis = {"domain": [0.0, 1.0], "anchor": "x", "showgrid": False, "autorange": "reversed"}
    steps = by_step(outcome)
    layout: dict[str, Any] = {"xaxis": whole, "yaxis": axis, "barmode": "group", "bargap": 0.25}
    if not len(steps):
        return style.drawn(traces, _finding(outcome), about, height=180, showlegend=False, **layout)
    below, unit = _steps(steps)
    return style.drawn(
        [*traces, *below], _finding(outcome), about, height=440, showlegend=True,
        **layout | {"yaxis": axis | {"domain": [0.78, 1.0]}},
        xaxis2={"anchor": "y2", "type": "category", "title": "step", "showgrid": False},
        yaxis2={
            "title": f"time of the step<br>({unit})", "domain": [0.0, 0.56], "anchor": "x2",
            "rangemode": "tozero",
        },
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


def _whole(outcome: Outcome, before: float, after: float, unit: str) -> list[dict[str, Any]]:
    ends = [before / end if end else after for end in (outcome.high, outcome.low)]
    whisker = {
        "type": "data", "symmetric": False, "array": [max(ends[1] - after, 0.0)],
        "arrayminus": [max(after - ends[0], 0.0)], "color": style.GREY, "thickness": 2, "width": 6,
    }  # fmt: skip
    words = f"predicted: {after:.4g} {unit}<br>90 % interval: {ends[0]:.4g} to {ends[1]:.4g} {unit}"
    common = {"type": "bar", "orientation": "h", "showlegend": False, "hoverinfo": "text", "offsetgroup": "whole"}
    return [
        {**common, "name": "recorded", "x": [before], "y": ["recorded"], "marker_color": style.BEFORE,
         "hovertext": [f"recorded: {before:.4g} {unit}"]},
        {**common, "name": "predicted", "x": [after], "y": ["predicted"], "marker_color": style.AFTER,
         "error_x": whisker, "hovertext": [words]},
    ]  # fmt: skip


def _steps(steps: pd.DataFrame) -> tuple[list[dict[str, Any]], str]:
    """Return traces of the steps' times and their unit: pairs of bars, or two lines where bars would be too thin."""
    times = {what: steps[f"{what}_us"] for what in ("recorded", "predicted")}
    factor, unit = style.time_unit(float(max(each.max() for each in times.values())))
    names = [str(step) for step in steps["step"]]
    traces = []
    for (what, lengths), color in zip(times.items(), (style.BEFORE, style.AFTER), strict=True):
        form: dict[str, Any] = {"type": "bar", "marker_color": color, "offsetgroup": what}
        if len(steps) > style.Sizes.ticks:
            form = {"type": "scatter", "mode": "lines", "line": {"color": color}}
        traces.append({
            **form, "name": what, "x": names, "y": (lengths / factor).to_numpy(), "hoverinfo": "text",
            "hovertext": [f"step {name}, {what}: {time_text(us)}" for name, us in zip(names, lengths, strict=True)],
            "xaxis": "x2", "yaxis": "y2",
        })  # fmt: skip
    return traces, unit


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
        return style.nothing("There are no factors", about)
    table = table.sort_values("factor", kind="stable")
    recorded = float(table["makespan_us"].iloc[0] + table["saved_us"].iloc[0])
    factor, unit = style.time_unit(max(recorded, float(table["makespan_us"].max())))
    best = table.iloc[int(table["makespan_us"].to_numpy().argmin())]
    curve = {
        "type": "scatter", "name": "predicted", "x": table["factor"], "y": table["makespan_us"] / factor,
        "mode": "lines+markers", "line": {"color": style.AFTER}, "hoverinfo": "text",
        "hovertext": style.hover_of(table, "factor {factor:g}: {makespan_us}, {speedup:.2f} times as fast"),
    }  # fmt: skip
    line = {
        "type": "scatter", "name": "recorded", "x": [table["factor"].min(), table["factor"].max()],
        "y": [recorded / factor] * 2, "mode": "lines", "line": {"color": style.GREY, "dash": "dash"},
        "hovertext": [f"recorded: {time_text(recorded)}"] * 2, "hoverinfo": "text",
    }  # fmt: skip
    finding = (
        f"Of these factors, {best['factor']:g} is the fastest: {time_text(float(best['makespan_us']))}, "
        f"{best['speedup']:.2f} times as fast as recorded"
    )
    if table["saved_us"].abs().max() < ROUNDING * recorded:
        finding = f"None of these factors changes the job's {time_text(recorded)} by {100 * ROUNDING:g} % or more"
    return style.drawn(
        [*_band(table, recorded, factor), curve, line], finding, about, xaxis={"title": "factor"},
        yaxis={"title": f"whole job ({unit})", "rangemode": "tozero"}, showlegend=True,
    )  # fmt: skip


def _band(table: pd.DataFrame, recorded: float, factor: float) -> list[dict[str, Any]]:
    """Return the area between both ends of the intervals; nothing where none were asked for."""
    if "low" not in table:
        return []
    common: dict[str, Any] = {
        "type": "scatter", "x": table["factor"], "mode": "lines", "line": {"width": 0, "color": style.AFTER},
        "hoverinfo": "skip",
    }  # fmt: skip
    low, high = ({**common, "y": recorded / table[end] / factor} for end in ("high", "low"))
    return [low | {"showlegend": False}, high | {"name": "90 % interval", "fill": "tonexty"}]


def capacity(result: Capacity) -> Figure:
    """Return the figure of other batches and devices: time per sample by batch, and the step by device.

    Args:
        result: result of `htagraph.capacity`.

    Returns:
        The figure, not shown; its axes are in µs, ms or s. The band and the whiskers are 90 % intervals.

    Example:
        >>> import htagraph as hg
        >>> found = hg.capacity(hg.load("data/gpu_demo/train"), batches=[8, 32], devices=["L4"])
        >>> [trace.name for trace in hg.plot.capacity(found).data if trace.name]
        ['90 % interval', 'predicted', 'by device']
    """
    about = "Each batch and each device is replayed. The band and the whiskers are 90 % intervals."
    size = f" of {result.batch}" if result.batch else ""
    if not len(result.batches) and not len(result.devices):
        return style.nothing("The recording does not show what another batch or device would do", about)
    batch = f" with a batch{size}" if size else ""
    recorded = f"Recorded: a step of {time_text(result.step_us)}{batch} on {result.device or 'its device'}"
    longest = max(table["high_us"].max() for table in (result.batches, result.devices) if len(table))
    factor, unit = style.time_unit(float(longest))
    height, above, below = style.one_above_the_other(220, 80, 30 * max(len(result.devices), 1))
    sizes, devices = result.batches["batch"], result.devices
    has_batches = len(sizes) > 0
    if not has_batches:  # the devices have the whole figure
        below = {"domain": [0.0, 1.0]}
    rows = _rows_axis(style.row_labels(devices["device"].tolist())) if len(devices) else {}
    traces = _by_batch(result.batches, factor) if len(sizes) else []
    traces += _by_device(devices, factor) if len(devices) else []
    return style.drawn(
        traces, recorded, about, height=height, showlegend=False,
        xaxis={"title": "batch", "type": "log", "tickvals": sizes, "ticktext": [str(each) for each in sizes],
               "anchor": "y", "visible": has_batches},
        yaxis=above | {"title": f"step ({unit})", "rangemode": "tozero", "anchor": "x", "visible": has_batches},
        xaxis2={"title": f"step ({unit})", "rangemode": "tozero", "anchor": "y2"},
        yaxis2=below | rows | {"anchor": "x2"},
    )  # fmt: skip


def _by_batch(table: pd.DataFrame, factor: float) -> list[dict[str, Any]]:
    common: dict[str, Any] = {"type": "scatter", "x": table["batch"], "line": {"color": style.AFTER}}
    edge = {**common, "mode": "lines", "line": {"width": 0, "color": style.AFTER}, "hoverinfo": "skip"}
    says = "batch {batch}: {step_us} per step ({low_us} to {high_us}), {samples_per_s:.4g} samples/s, bound by {bound}"
    return [
        {**edge, "y": table["low_us"] / factor},
        {**edge, "y": table["high_us"] / factor, "name": "90 % interval", "fill": "tonexty"},
        {**common, "y": table["step_us"] / factor, "name": "predicted", "mode": "lines+markers",
         "hovertext": style.hover_of(table, says), "hoverinfo": "text"},
    ]  # fmt: skip


def _by_device(table: pd.DataFrame, factor: float) -> list[dict[str, Any]]:
    step, low, high = (table[name] / factor for name in ("step_us", "low_us", "high_us"))
    whisker = {"type": "data", "symmetric": False, "array": high - step, "arrayminus": step - low, "color": style.GREY}
    says = "{device}: {step_us} per step ({low_us} to {high_us}), {speedup:.2f} times as fast, bound by {bound}"
    return [{
        "type": "bar", "orientation": "h", "name": "by device", "x": step, "y": list(range(len(table))),
        "error_x": whisker, "marker_color": style.AFTER, "hovertext": style.hover_of(table, says),
        "hoverinfo": "text", "xaxis": "x2", "yaxis": "y2",
    }]  # fmt: skip


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
        return style.nothing(finding, about)
    rows = result.summary()
    rows = rows[(rows["group"] == by) & (rows["change_us"] != 0)]
    large = rows.head(_ROWS)
    names, changes = _labels([str(key) for key in large["key"]], by), large["change_us"].tolist()
    says = "{key}<br>{change}: {before_us} → {after_us} per step, on the critical path"
    hover = style.hover_of(large.assign(change=large["change_us"].map(_signed)), says)
    if len(rows) > len(large):
        names.append(f"{len(rows) - len(large):,} smaller ones")
        changes.append(result.change_us - float(large["change_us"].sum()))
        hover.append(f"{names[-1]}: {_signed(changes[-1])}")
    names = ["before", *names, "after"]
    hover = [f"before: {time_text(result.before_us)}", *hover, f"after: {time_text(result.after_us)}"]
    levels = [result.before_us, *accumulate(changes, initial=result.before_us), result.after_us]
    low, high = min(levels), max(levels)
    factor, unit = style.time_unit(high)
    room = 0.08 * ((high - low) or high)  # beyond both ends of the axis
    waterfall = {
        "type": "waterfall", "orientation": "h", "y": list(range(len(names))),
        "x": [*(each / factor for each in (result.before_us, *changes)), None],
        "measure": ["absolute", *["relative"] * len(changes), "total"], "hovertext": hover, "hoverinfo": "text",
        "connector": {"line": {"color": style.GREY, "width": 1}},
        "increasing": {"marker": {"color": COLORS["vermillion"]}},
        "decreasing": {"marker": {"color": COLORS["blue"]}}, "totals": {"marker": {"color": COLORS["light"]}},
        "text": ["", *map(_signed, changes), ""], "textposition": "none",
    }  # fmt: skip
    return style.drawn(
        [waterfall], finding, f"{about} The axis does not begin at 0.", height=110 + 26 * len(names), showlegend=False,
        xaxis={"title": f"{result.unit} time ({unit})", "range": [(low - room) / factor, (high + room) / factor]},
        yaxis=_rows_axis(names),
    )  # fmt: skip


def _rows_axis(names: list[str]) -> dict[str, Any]:
    """Return an axis of rows, the first at the top."""
    rows = list(range(len(names)))
    return {"tickvals": rows, "ticktext": names, "range": [len(names) - 0.5, -0.5], "showgrid": False}


def _labels(keys: list[str], by: str) -> list[str]:
    """Return a label for each row."""
    if by == "category":
        return [CATEGORY_WORDS.get(key, key) for key in keys]
    if by == "rank":
        return [f"rank {key}" for key in keys]
    labels = style.row_labels(sibling_names(keys))
    return [f"outside all {by}s" if key == "none" else label for key, label in zip(keys, labels, strict=True)]


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else ''}{time_text(us)}"


def opportunities(table: pd.DataFrame) -> Figure:
    """Return the figure of what could be gained: bars from the recorded time back, each below its ceiling.

    Args:
        table: result of `htagraph.opportunities`.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. A bar is the gain if the candidate took no time, the mark on
        the bar the gain if the candidate took half of its time, and the pale bar behind the candidate's time on the
        critical path.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.opportunities(hg.opportunities(hg.load("data/demo")))
        >>> [trace.name for trace in figure.data]
        ['time on the critical path', 'gain if it took no time', 'gain if it took half']
    """
    about = "Each gain is a replay of its own; they overlap and do not add up."
    if not len(table):
        return style.nothing("Nothing that could be changed is on the critical path", about)
    shown = table.head(25)  # they fit a screen
    names = [_words(str(what), str(name)) for what, name in zip(shown["what"], shown["name"], strict=True)]
    factor, unit = style.time_unit(float(shown[["gain_us", "critical_us"]].to_numpy().max()))
    common = {"y": list(range(len(shown))), "hovertext": style.hover_of(shown, _gain_says), "hoverinfo": "text"}
    bar: dict[str, Any] = {**common, "type": "bar", "orientation": "h"}
    traces: list[dict[str, Any]] = [
        {**bar, "name": "time on the critical path", "x": shown["critical_us"] / factor, "marker_color": style.BEFORE,
         "width": 0.8},
        {**bar, "name": "gain if it took no time", "x": shown["gain_us"] / factor, "marker_color": style.AFTER,
         "width": 0.5},
    ]  # fmt: skip
    if "gain_at_50_us" in shown:
        mark = {"symbol": "line-ns", "size": 14, "line": {"width": 3, "color": COLORS["orange"]}}
        traces.append({
            **common, "type": "scatter", "name": "gain if it took half", "x": shown["gain_at_50_us"] / factor,
            "mode": "markers", "marker": mark,
        })  # fmt: skip
    first = shown.iloc[0]
    finding = (
        f"Largest gain: {time_text(float(first['gain_us']))} ({first['gain_percent']:.0f} % of the job) if "
        f"{style.plain(names[0], style.Sizes.name)} took no time"
    )
    return style.drawn(
        traces, finding, about, height=110 + 30 * len(shown), barmode="overlay", showlegend=True, legend=style.ABOVE,
        xaxis={"title": f"of the whole job ({unit})", "rangemode": "tozero"}, yaxis=_rows_axis(style.row_labels(names)),
    )  # fmt: skip


def plan(result: BestChanges) -> Figure:
    """Return the figure of a plan: a bar per change of the best set, each behind the changes above.

    Args:
        result: result of `htagraph.plan`.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. The pale bar behind a change is its gain alone, the
        whisker the 90 % interval of the whole plan.

    Example:
        >>> import htagraph as hg
        >>> [trace.name for trace in hg.plot.plan(hg.plan(hg.load("data/demo"))).data]
        ['alone', 'adds to those above']
    """
    each = "per step" if result.per_step else "of the whole job"
    about = f"The best set of changes, {each}: what each adds to those above it, and alone. The whisker: 90 %."
    rows = result.changes
    if not len(rows):
        return style.nothing("No change that was compared saves anything", about)
    low, high = result.interval_us
    factor, unit = style.time_unit(max(high, float(rows["alone_us"].max())))
    begins = rows["adds_us"].cumsum() - rows["adds_us"]
    whisker = {
        "type": "data", "symmetric": False, "array": [0.0] * len(rows) + [max(high - result.saved_us, 0.0) / factor],
        "arrayminus": [0.0] * len(rows) + [max(result.saved_us - low, 0.0) / factor], "color": style.GREY,
    }  # fmt: skip
    places = list(range(len(rows)))
    common: dict[str, Any] = {"type": "bar", "orientation": "h", "hoverinfo": "text"}
    alone = {
        **common,
        "name": "alone",
        "y": places,
        "x": rows["alone_us"] / factor,
        "base": begins / factor,
        "width": 0.8,
        "marker_color": style.BEFORE,
        "hovertext": style.hover_of(rows, "{change}<br>alone: {alone_us}"),
    }
    adds = {
        **common,
        "name": "adds to those above",
        "y": [*places, len(rows)],
        "width": 0.5,
        "error_x": whisker,
        "x": [*rows["adds_us"] / factor, result.saved_us / factor],
        "base": [*begins / factor, 0.0],
        "marker_color": style.AFTER,
        "textposition": "none",
        "hovertext": [*style.hover_of(rows, "{change}<br>adds {adds_us}"), f"together: {time_text(result.saved_us)}"],
    }
    names = [*_in_lines(rows["change"].tolist()), "together"]
    count = f"{len(rows)} change{'s' * (len(rows) > 1)}"
    share = float(result.curve["saved_percent"].iloc[-1])
    return style.drawn(
        [alone, adds], f"{count} save {time_text(result.saved_us)} {each} together ({share:.0f} %)", about,
        height=120 + 60 * len(names), barmode="overlay", showlegend=True, legend=style.ABOVE,
        xaxis={"title": f"saved {each} ({unit})", "rangemode": "tozero"}, yaxis=_rows_axis(names),
    )  # fmt: skip


def _in_lines(texts: Sequence[str]) -> list[str]:
    """Return labels of rows, whole, in lines that a third of the figure has room for."""
    lines = (textwrap.wrap(style.plain(text), style.Sizes.axis) for text in texts)
    return ["<br>".join(map(style.escaped, wrapped)) for wrapped in lines]


def _words(what: str, name: str) -> str:
    """Return what a row is about: names of phases and ranks say it already."""
    if what == "group":
        return f"transfers of {group_words(style.plain(name))}"
    if what == "straggler":
        return f"what {style.plain(name)} takes"
    short = style.plain(short_name(name) if what == "kernel" else name)
    return short if what in ("rank", "phase") else f"{what} {short}"


def _gain_says(row: Mapping[str, Any]) -> str:
    gain = "gain if it took no time: {gain_us}, {gain_percent:.1f} % of the job"
    times = "on the critical path: {critical_us}; its own time, all ranks: {time_us}"
    more = [f"{word}: {{{word}}}" for word in ("note", "inside") if row.get(word)]
    return "<br>".join(["{name}", gain, times, *more])
