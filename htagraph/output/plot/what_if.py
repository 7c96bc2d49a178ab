"""What-if: the job and its steps as recorded and as predicted, and predictions for many factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from htagraph.findings.phrases import time_text
from htagraph.output.plot.style import AFTER, BEFORE, GREY, drawn, nothing, time_unit

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from htagraph.whatif.outcome import Outcome

__all__ = ["sweep", "what_if"]

_MAX_BARS = 40
"""Steps that are pairs of bars. Chosen: they are 6 pixels wide at 700; more are two lines. Doubled, they are 3 wide."""
_LEAST_CHANGE = 0.005
"""Share of the job that a sweep must change to be called a change. Chosen: runs of one job differ by as much. Doubled,
changes of 0.5 to 1 % are called none."""
_MAX_NOTES = 2
"""Notes on the prediction below the title; chosen: they are the most important. Doubled, they push the figure down."""


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
