"""Outcome: the prediction of a scenario, moment by moment, with an interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import log
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints
from htagraph.core.computing import once
from htagraph.core.errors import SelectionError
from htagraph.core.tables import Col, Table, described
from htagraph.graph.activities import frozen
from htagraph.graph.measures.ledger import unrecorded_host
from htagraph.graph.measures.steps import gain_steps, last_end, mean_step_ns, step_lengths, usual_step_ns
from htagraph.graph.selection import IntSelector
from htagraph.queries.replay import predict
from htagraph.queries.weights import NEVER, State

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from htagraph.core.runs import Runs
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath
    from htagraph.whatif.interval import Interval
    from htagraph.whatif.interval_cause import IntervalCause
    from htagraph.whatif.links import Assumed
    from htagraph.whatif.readings import Lengths

__all__ = ["Outcome"]

STEP_TIMES = Table(
    "Step times, from the first rank's start to the last rank's end",
    Col("step rank", "int64"),
    Col("start_us end_us predicted_start_us predicted_end_us", doc="on the common clock since the job's first moment"),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The prediction of a scenario. Every time is on the common clock of all ranks; a makespan begins at its origin."""

    baseline: DependencyGraph
    """The job as recorded."""
    state: State
    """The weights of the scenario."""
    changes: tuple[str, ...]
    """The changes, in order."""
    links: Assumed
    """What is assumed about links that transfers share."""

    @cached_property
    def time(self) -> Ints:
        """The predicted moment of each vertex of `state.graph`, ns."""
        return predict(self.state.graph, self.state.lag, self.state.gap, self.state.head)

    @cached_property
    def _runs(self) -> Runs | None:
        """The job in runs; None where the scenario has another graph, or transfers may share links."""
        from htagraph.whatif.readings import runs_of_state  # numba takes a moment to load

        graph = self.state.graph
        same = graph is self.baseline and bool(graph.awake.any())
        return runs_of_state(self.state) if same and not self.links.may_share else None

    @cached_property
    def marks(self) -> Ints:
        """`time`, of which only the starts and ends of steps and the last end need to be right; others are earlier."""
        spans, runs = self.state.graph.step_spans, None if "time" in vars(self) else self._runs
        return self.time if runs is None else runs.at(np.append(spans.start, spans.end))

    def __repr__(self) -> str:
        what = " · ".join(self.changes) or "nothing changed"
        return f"Outcome({what}: {self.baseline_ns / 1e6:.3f} → {self.makespan_ns / 1e6:.3f} ms, {self._speedup_text})"

    def _repr_html_(self) -> str:
        """Return the makespan and the usual step, recorded and predicted, as a small HTML table for notebooks."""
        times = (("makespan", self.baseline_ns, self.makespan_ns), ("usual step", self.baseline_step_ns, self.step_ns))
        rows = "".join(
            f"<tr><th>{what}</th><td>{before / 1e6:,.3f}</td><td>{after / 1e6:,.3f}</td></tr>"
            for what, before, after in times
        )
        lines = (" · ".join(self.changes) or "nothing changed", f"speedup {self._speedup_text}", *self.notes)
        caption = "<br/>".join(escape(line) for line in lines)
        head = "<tr><th>ms</th><th>recorded</th><th>predicted</th></tr>"
        return f"<table><caption>{caption}</caption>{head}{rows}</table>"

    @property
    def _speedup_text(self) -> str:
        if self.baseline_ns and not self.makespan_ns:
            return "without bound: nothing that takes time is left"
        return f"{self.speedup:.3f}× [{self.low:.3f}, {self.high:.3f}]"

    @property
    def changes_unrecorded_host(self) -> bool:
        """Whether the scenario changes the time of a host whose operators were not recorded, which nothing predicts."""
        before = self.baseline.gap[unrecorded_host(self.baseline)].sum()
        after = self.state.gap[unrecorded_host(self.state.graph, self.baseline)].sum()
        return bool(before != after)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the prediction: that it is an extrapolation, why nothing changes, what the recording cannot tell."""
        from htagraph.whatif.no_effect import why_no_effect

        why = why_no_effect(self)
        return (*self.state.notes, *([why] if why else []), *self.doubts)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the recording cannot tell, and which recording would; empty where nobody needs to know."""
        if not self._interval.too_wide:
            return ()
        from htagraph.whatif.interval import telling

        low, high, cause, _ = self._interval
        end = self._interval.near_end(self.speedup)
        wider = log(high / low) > abs(log(self.speedup))  # than the change
        doubt = f"the recording cannot tell{' how much' * (not low < 1 < high)}" if wider else "known only roughly"
        note = f"{doubt}: a speedup of {low:.2f} to {high:.2f} (90 %), as {cause}"
        note += f"; the prediction is nearly the {end} case" if end else ""
        return (f"{note}; a recording {telling(self.baseline, cause)} shows more",)

    @property
    def baseline_ns(self) -> int:
        """The recorded makespan, ns: from the first moment to the last of any thread that does something."""
        return _recorded_span(self.baseline)

    @cached_property
    def makespan_ns(self) -> int:
        """The predicted makespan, ns: from the first recorded moment to the last predicted one."""
        return _span(self.baseline, self.marks)

    @property
    def speedup(self) -> float:
        """How many times as fast the job is: `baseline_ns` / `makespan_ns`; infinite if nothing is left of it."""
        before, after = self.baseline_ns, self.makespan_ns
        return before / after if after else (float("inf") if before else 1.0)

    @property
    def saved_ns(self) -> int:
        """How much shorter the makespan becomes, ns; negative if it becomes longer."""
        return self.baseline_ns - self.makespan_ns

    @property
    def low(self) -> float:
        """The lower end of the 90 % interval of `speedup`.

        The interval covers the predictions under other ways to read the recording: pauses that no edge explains vanish,
        waits that are not certain do not exist, waits that may be missing exist, loaders and messages that nothing
        waited for take nearly as long as they can, transfers share a link or do not, kernels on another device take as
        long, or as little, as they may. The interval also covers how much
        steps differ, from each other and from run to run. It is [1, 1] if no moment changes.
        """
        return self._interval.low

    @property
    def high(self) -> float:
        """The upper end of the 90 % interval of `speedup`; see `low`."""
        return self._interval.high

    @property
    def interval_cause(self) -> IntervalCause:
        """The cause of the width of the interval [`low`, `high`]; its value is its words, empty without a width."""
        return self._interval.cause

    @property
    def saved_range_ns(self) -> tuple[int, int]:
        """The 90 % interval of `saved_ns` for the recorded run itself, ns.

        The interval covers the other ways to read the recording, as `low` and `high` do, and how far savings are off,
        but not how much steps differ from run to run: with and without the change, the run is the same.
        """
        before = self.baseline_ns
        low, high = (before - round(before / each) if each else self.saved_ns for each in self._interval.same_run)
        return low, high

    @cached_property
    def _interval(self) -> Interval:
        from htagraph.whatif import interval
        from htagraph.whatif.interval_cause import IntervalCause

        if not 0 < self.speedup < float("inf") or interval.changes_nothing(self.baseline, self.links.state):
            return interval.Interval(self.speedup, self.speedup, IntervalCause.NONE, (self.speedup, self.speedup))
        prediction = self._length(self.state.graph, self.marks, self.makespan_ns + self.baseline.origin_ns)
        moves = self.makespan_ns != self.baseline_ns or not np.array_equal(self.time, self.baseline.time)
        return interval.interval(self.baseline, self.links, prediction, self._length, self._runs, moves=moves)

    def _length(self, graph: DependencyGraph, time: Array, last: int | None = None) -> Lengths:
        """Return the lengths of a job; `last` is the last end, if `time` holds steps alone."""
        from htagraph.whatif.readings import Lengths  # numba takes a moment to load

        span = float(_span(self.baseline, time) if last is None else last - self.baseline.origin_ns)
        usual = usual_step_ns(graph, time, self.baseline) if len(graph.step_spans) else span
        return Lengths(span, step_lengths(graph, time, ends=True)[1], max(usual, self._least_step_ns))

    @property
    def baseline_steps_ns(self) -> float:
        """How long the steps that follow another one take together as recorded, ns."""
        return float(self._length(self.baseline, self.baseline.time).steps.sum())

    @property
    def baseline_step_ns(self) -> float:
        """How long a step takes as recorded, ns: the mean of the regular steps."""
        return usual_step_ns(self.baseline, self.baseline.time)

    @property
    def step_ns(self) -> float:
        """How long a step takes as predicted, ns: the mean of the steps that are regular as recorded.

        It is shorter by at most the time that the changes take away in these steps.
        """
        return max(usual_step_ns(self.state.graph, self.marks, self.baseline), self._least_step_ns)

    @cached_property
    def _least_step_ns(self) -> float:
        """The least that a usual step may take, ns: the changes take no more away."""
        from htagraph.whatif.time_taken import most_per_usual_steps

        steps = gain_steps(self.baseline)
        if steps <= 1:
            return 0.0
        return self.baseline_step_ns - most_per_usual_steps(self.baseline, self.state) / steps

    @property
    def baseline_mean_step_ns(self) -> float:
        """Recorded mean step time over all ranks, ns: (last end - first start) / steps; the makespan without steps."""
        return mean_step_ns(self.baseline, self.baseline.time)

    @property
    def mean_step_ns(self) -> float:
        """Predicted mean step time over all ranks, ns: (last end - first start) / steps; the makespan without steps."""
        return mean_step_ns(self.state.graph, self.marks)

    @described(STEP_TIMES)
    def step_times(self) -> pd.DataFrame:
        """Return the start and end of each step, as recorded and as predicted.

        A step starts with its ProfilerStep annotation and ends when the annotation and all work launched in it end.

        Returns:
            One row per rank and step, in that order: {columns}.
        """
        graph, origin = self.baseline, self.baseline.origin_ns
        steps, predicted = graph.step_spans, self.state.graph.step_spans
        return STEP_TIMES.frame(
            {
                "step": steps.step,
                "rank": steps.rank,
                "start_us": (graph.time[steps.start] - origin) / 1000,
                "end_us": (graph.time[steps.end] - origin) / 1000,
                "predicted_start_us": (self.marks[predicted.start] - origin) / 1000,
                "predicted_end_us": (self.marks[predicted.end] - origin) / 1000,
            }
        )

    @cached_property
    def graph(self) -> DependencyGraph:
        """The job as predicted: the same activities at the predicted moments, the edges with their changed lags.

        All ranks are on the common clock. Edges that no longer constrain anything are left out.
        """
        graph = self.state.graph
        start = self.time[0::2]
        # an event without an edge from start to end, such as one whose slices were refused, might end before it starts
        duration = np.maximum(self.time[1::2] - start, 0)
        edges, void = replace(graph.edges, lag=self.state.lag), self.state.lag <= NEVER
        edges = edges.take(~void) if void.any() else edges
        activities = replace(graph.activities, start=start, duration=duration)
        return graph.replace(activities=activities, edges=edges, clocks=())

    def critical_path(self, steps: IntSelector = None, ranks: IntSelector = None) -> CriticalPath:
        """Return the critical path of the job as predicted; see `htagraph.critical_path`.

        Args:
            steps: only these steps.
            ranks: only these ranks.
        """
        from htagraph.queries.paths import path_in_window

        return path_in_window(self.graph, steps, ranks)

    def plot(self) -> Figure:
        """Return the figure of the job and its steps before and after; see `htagraph.plot.what_if`."""
        from htagraph.output.plot.what_if import what_if

        return what_if(self)

    @cached_property
    def samples_ns(self) -> Ints:
        """The makespan of each run with noise, ns.

        Raises:
            SelectionError: the scenario has no jitter.
        """
        return frozen(self._draws[0])

    @cached_property
    def step_samples_ns(self) -> npt.NDArray[np.float64]:
        """The mean step time of each run with noise, ns.

        Raises:
            SelectionError: the scenario has no jitter.
        """
        return frozen(self._draws[1])

    @property
    def p50_ns(self) -> float:
        """Median makespan of the runs with noise, ns."""
        return float(np.percentile(self.samples_ns, 50))

    @property
    def p99_ns(self) -> float:
        """99th percentile of the makespan of the runs with noise, ns."""
        return float(np.percentile(self.samples_ns, 99))

    @property
    def p50_step_ns(self) -> float:
        """Median of the mean step time of the runs with noise, ns."""
        return float(np.percentile(self.step_samples_ns, 50))

    @property
    def p99_step_ns(self) -> float:
        """99th percentile of the mean step time of the runs with noise, ns."""
        return float(np.percentile(self.step_samples_ns, 99))

    @cached_property
    def _draws(self) -> tuple[Array, Array]:
        from htagraph.whatif.changes.jitter import drawn

        if not self.state.jitter:
            msg = "no runs with noise: add .jitter(sigma=..., runs=...) to the scenario"
            raise SelectionError(msg)
        spans, means = [], []
        for state in drawn(self.state):
            time = predict(state.graph, state.lag, state.gap, state.head)
            spans.append(_span(self.baseline, time))
            means.append(mean_step_ns(state.graph, time))
        return np.array(spans, np.int64), np.array(means, np.float64)


@once
def _recorded_span(graph: DependencyGraph) -> int:
    return _span(graph, graph.time)


def _span(graph: DependencyGraph, time: Array) -> int:
    last = last_end(graph, time)  # no moment is later
    return 0 if last is None else last - graph.origin_ns
