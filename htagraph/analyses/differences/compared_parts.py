"""The part of each of two jobs that is compared: its steps, its ranks, and how many pairs of them it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, occurring
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ADDED, of_kinds
from htagraph.core.statistics import MOST, SEVERAL, STANDS_OUT
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import StepWindow, cadence_of, is_paced_by_ends, step_lengths, step_window
from htagraph.graph.selection import IntSelector
from htagraph.queries.paths import CriticalPath, path_in_window, path_to

__all__ = ["ComparedPart", "parts_of"]


@dataclass(frozen=True, eq=False)
class ComparedPart:
    """The part of a job that is compared."""

    graph: DependencyGraph
    steps: tuple[int, ...] | None
    """All steps from the first to the last chosen; None for the whole job, of which there is one."""
    ranks: IntSelector
    activities: Array
    """Recorded activities in it."""
    repeats: int
    """How many pairs of rank and step it has, or ranks for a whole job; at least 1."""
    window: StepWindow | None
    """The steps that say how long a step takes; None for the whole job."""

    @property
    def chosen_ranks(self) -> tuple[int, ...]:
        """The ranks in it."""
        if self.ranks is None:
            return self.graph.ranks
        return (int(self.ranks),) if isinstance(self.ranks, int | np.integer) else tuple(self.ranks)

    def usual_ns(self, time: Array) -> float:
        """Return how long a usual step takes, ns: the median time from step to step; of a whole job, all of it.

        `time` is the moment of each vertex, ns, as recorded or as predicted.
        """
        if self.window is not None:
            usual = float(np.median(self.step_lengths(time)[1]))
            return usual if usual > 0 else self.window.mean(time)
        rows = self.activities[self.graph.awake[self.activities]]
        rows = rows if len(rows) else self.activities
        return float(time[2 * rows + 1].max() - time[2 * rows].min()) if len(rows) else 0.0

    def saved_ns(self, time: Array) -> float:
        """Return how much shorter the usual step is in a replay, ns: over the steps that make it up."""
        if self.window is None:
            return self.usual_ns(self.graph.time) - self.usual_ns(time)
        (numbers, was), (_, now) = self.step_lengths(self.graph.time), self.step_lengths(time)
        return float((self.weights[numbers] * (was - now)).sum())

    def step_lengths(self, time: Array) -> tuple[Array, npt.NDArray[np.float64]]:
        """Return (numbers of the steps, the time of each from step to step, ns, mean over ranks).

        See `steps.step_lengths`. Where no step has a next one, it is from the start of each to its end.
        """
        some = np.isin(self.graph.step_spans.rank, self.chosen_ranks)
        numbers, lengths = step_lengths(self.graph, time, ends=is_paced_by_ends(self.graph), some=some)
        chosen = np.isin(numbers, self.steps or ())
        if self.window is not None and not chosen.any():
            return self.window.steps, self.window.lengths(time).astype(np.float64)
        return numbers[chosen], lengths[chosen]

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """How much each step number counts in the usual step; the last one is for what is in no step.

        All count alike but those that stand out by their length, so that no odd step says what a usual one is made of.
        On a host, the first recorded step does not: it may wait for what began before the recording.
        """
        weights = np.zeros(int(self.graph.activities.step.max(initial=0)) + 2)
        if self.steps is None:
            return weights + 1
        numbers, lengths = self.step_lengths(self.graph.time)
        is_cut = len(numbers) > SEVERAL and numbers[0] == self.graph.steps[0] and not is_paced_by_ends(self.graph)
        numbers, lengths = numbers[int(is_cut) :], lengths[int(is_cut) :]
        usual = float(np.median(lengths)) if len(lengths) else 0.0
        counts = (lengths <= STANDS_OUT * usual) & (STANDS_OUT * lengths >= usual)
        counts |= counts.sum() < MOST * len(counts)
        weights[numbers] = counts / max(float(counts.sum()), 1.0)
        return weights

    def per_step(self, rows: Array) -> npt.NDArray[np.float64]:
        """Return what each activity counts in the usual step of a rank, so that times of all sum to that of a step."""
        return self.weights[self.graph.activities.step[rows]] * len(self.steps or (0,)) / self.repeats

    def usual_times(self, path: CriticalPath) -> npt.NDArray[np.float64]:
        """Return the time of each segment of its critical path in a usual step, ns; they sum to `usual_ns`."""
        parts, (steps, marks) = path.segments, self._marks
        passed = np.concatenate(([0.0], np.cumsum(self.weights[steps] * np.diff(marks))))
        at = np.append(parts.start, parts.start[-1:] + parts.length[-1:])
        times = np.diff(np.interp(at - marks[0], marks - marks[0], passed)) if len(steps) else parts.length
        times = times if times.sum() > 0 else parts.length
        return np.asarray(times * (self.usual_ns(self.graph.time) / max(float(times.sum()), 1.0)))

    def times_by_step(self, path: CriticalPath, category: int) -> npt.NDArray[np.float64]:
        """Return how long its critical path spends on a category in each compared step, ns; all of it without steps."""
        parts, (steps, marks) = path.segments, self._marks
        spent = np.concatenate(([0.0], np.cumsum(np.where(parts.category == category, parts.length, 0))))
        at = np.append(parts.start, parts.start[-1:] + parts.length[-1:])
        known = np.isin(steps, self.step_lengths(self.graph.time)[0])
        return np.diff(np.interp(marks - at[:1], at - at[:1], spent))[known] if known.any() else spent[-1:]

    @cached_property
    def _marks(self) -> tuple[Array, Array]:
        """The steps of the rank that says how long a step takes, and the moments between which each of them lies."""
        spans, ends = self.graph.step_spans, is_paced_by_ends(self.graph)
        rows = np.flatnonzero((spans.rank == self.window.rank) if self.window else spans.rank < 0)
        marks = np.maximum.accumulate(self.graph.time[(spans.end if ends else spans.start)[rows]])
        return spans.step[rows[1:] if ends else rows[:-1]], marks

    def sums(self, key: Array, size: int) -> tuple[Array, Array]:
        """Return (how many of its activities have each key, how long they last in all, ns)."""
        keys, time = key[self.activities], np.zeros(size, np.int64)
        np.add.at(time, keys, self.graph.activities.duration[self.activities])
        return np.bincount(keys, minlength=size), time

    def path(self) -> CriticalPath:
        """Return the critical path of all steps, from the begin to the end of `window`; else that of the whole job."""
        if self.window is None:
            return path_in_window(self.graph, None, self.ranks)
        return path_to(self.graph, np.array([self.window.end]), int(self.graph.time[self.window.begins[0]]))


def parts_of(
    before: DependencyGraph, after: DependencyGraph, steps: IntSelector, steps_after: IntSelector, ranks: IntSelector
) -> tuple[ComparedPart, ComparedPart]:
    """Return the compared part of each job: the chosen steps, or all; whole jobs if one of them has no steps.

    Of all, first steps that warm up are left out: they are of neither job.
    """
    for which, graph in (("before", before), ("after", after)):
        if not isinstance(graph, DependencyGraph):
            msg = f"the job {which} is a {type(graph).__name__}, not a DependencyGraph: load it with htagraph.load"
            raise TypeError(msg)
    if steps is None and steps_after is None and not (before.steps and after.steps):
        return _part_of("before", before, None, ranks), _part_of("after", after, None, ranks)
    later = steps if steps_after is None else steps_after
    return (
        _part_of("before", before, before.steps[_warm_up(before, after) :] if steps is None else steps, ranks),
        _part_of("after", after, after.steps[_warm_up(before, after) :] if later is None else later, ranks),
    )


def _warm_up(*graphs: DependencyGraph) -> int:
    """Return how many first steps warm up in one of the jobs, as far as each has others: both are without as many."""
    cadences = [cadence_of(graph) for graph in graphs]
    most = max(each.warm_up if each else 0 for each in cadences)
    return min(most, *(max(len(graph.steps) - 1, 0) for graph in graphs))


def _part_of(which: str, graph: DependencyGraph, steps: IntSelector, ranks: IntSelector) -> ComparedPart:
    try:
        return _part(graph, steps, ranks)
    except SelectionError as error:
        msg = f"the job {which}: {error}"
        raise SelectionError(msg) from None


def _part(graph: DependencyGraph, steps: IntSelector, ranks: IntSelector) -> ComparedPart:
    numbers: tuple[int, ...] | None = None
    if steps is not None:
        chosen = [steps] if isinstance(steps, int | np.integer) else list(steps)
        if not chosen:
            msg = "no step is chosen; leave steps out for all" if graph.steps else "it has no steps to choose from"
            raise SelectionError(msg)
        graph.select(step=chosen)  # refuses what is not there
        numbers = tuple(step for step in graph.steps if min(chosen) <= step <= max(chosen))
    rows = graph.select(step=numbers, rank=ranks).activities
    acts = graph.activities
    pairs = acts.rank[rows].astype(np.int64) * (int(acts.step.max(initial=0)) + 2)
    if numbers is not None:
        pairs += acts.step[rows]
    rows, pairs = (column[~of_kinds(acts.kind[rows], ADDED)] for column in (rows, pairs))
    window = step_window(graph, numbers, ranks) if numbers else None
    return ComparedPart(graph, numbers, ranks, rows, max(1, len(occurring(pairs))), window)
