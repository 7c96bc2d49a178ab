"""The part of each of two jobs that is compared: its steps, its ranks, and how many pairs of them it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, occurring
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ADDED, of_kinds
from htagraph.core.statistics import CHANCE, upper_quantile
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import StepWindow, cadence_of, is_paced_by_ends, step_lengths, step_window
from htagraph.graph.selection import IntSelector
from htagraph.queries.paths import CriticalPath, path_in_window, path_to

__all__ = ["ComparedPart", "chance_us", "parts_of", "step_times_ns"]


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

    @property
    def count(self) -> int:
        """How many steps lie between the begin and the end of what is compared; 1 for a whole job."""
        return self.window.count if self.window else 1

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


def chance_us(parts: tuple[ComparedPart, ComparedPart]) -> float:
    """Return by how much the mean step times may differ by chance, µs, as steps of one job differ; 0 if unknown.

    That is Student's limit for the difference of two means, from the spread of the steps of each job.
    """
    times = [step_times_ns(part) for part in parts]
    if min(len(each) for each in times) < 2:
        return 0.0
    freedom = sum(len(each) - 1 for each in times)
    error = float(np.sqrt(sum(each.var(ddof=1) / len(each) for each in times)))
    return upper_quantile(CHANCE, freedom) * error / 1000


def step_times_ns(part: ComparedPart) -> npt.NDArray[np.float64]:
    """Return the time from each step to the next, mean over ranks, ns; see `steps.step_lengths`."""
    graph, spans = part.graph, part.graph.step_spans
    some = np.isin(spans.step, part.steps or ()) & np.isin(spans.rank, part.chosen_ranks)
    return step_lengths(graph, graph.time, ends=is_paced_by_ends(graph), some=some)[1]


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
