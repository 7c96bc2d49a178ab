"""What a step is in a diff: from its start to the next step's start, on one rank.

The last step has no next one, and what the profiler does when it stops lies in it: its annotation may end long after
its work, and its collectives may wait for ranks whose profiler stops already. Some ranks also begin to record late, and
the others wait for them in their first step. Ranks that synchronize take equally long per step, so one of them says how
long a step takes: the one whose first and last steps are most like its others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import ADDED, ActivityKind
from htagraph.core.naming import names_that
from htagraph.graph.selection import IntSelector
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["StepWindow", "step_window"]

_ALIKE_SHARE = 0.05
"""Share of a step; chosen: ranks of one job enter a step that far apart by chance. Ranks whose usual step is that much
shorter than the slowest one's do not say how long a step takes, and ranks whose first and last steps are alike within
it are equally good. Doubled, a rank that is 10 % faster than another, which nobody waits for, may say how long it is.
"""
_COMMON_SHARE = 0.5
"""Share of a rank's steps that all ranks recorded, from which on only these are taken. Chosen: a rank that recorded few
steps does not hide those of the others. Doubled, steps in which a rank did not record yet are always taken.
"""


@dataclass(frozen=True, eq=False)
class StepWindow:
    """Successive steps of one rank, and where they begin and end."""

    rank: int
    steps: npt.NDArray[np.int64]
    """Numbers of the steps that the rank recorded, ascending."""
    begins: npt.NDArray[np.int64]
    """The vertex at which each begins: the start of its annotation."""
    end: int
    """The vertex at which the last one ends: where the annotation and all its work are over, or where its work is over
    if the annotation goes on longer than that of any other step did."""

    @property
    def count(self) -> int:
        """How many steps passed from the first to the last, those that were not recorded among them."""
        return int(self.steps[-1] - self.steps[0]) + 1

    def lengths(self, time: Array) -> npt.NDArray[np.int64]:
        """Return how long each step takes, ns: to the start of the next one, the last one to its end.

        Args:
            time: when each vertex happens, ns.
        """
        return np.diff(np.append(time[self.begins], time[self.end]))

    def mean(self, time: Array) -> float:
        """Return the mean step time, ns.

        Args:
            time: when each vertex happens, ns.
        """
        return float(time[self.end] - time[self.begins[0]]) / self.count


def step_window(graph: DependencyGraph, steps: IntSelector = None, ranks: IntSelector = None) -> StepWindow | None:
    """Return the steps of the rank that says how long a step takes; None for a job without steps.

    Of the ranks with most steps and no shorter ones than others, it is the one whose first and last steps are most like
    its others; of those that are equally good, the one on which all steps together last longest. Steps in which some
    rank did not record are left out where most were recorded by all.

    Args:
        graph: the job.
        steps: only these steps.
        ranks: only these ranks.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> window = step_window(graph)
        >>> bool(window.mean(graph.time) == window.lengths(graph.time).mean())
        True
    """
    windows = _windows(graph, _in_common(graph, graph.select(step=steps, rank=ranks).activities))
    if not windows:
        return None
    most = max(len(each.steps) for each in windows)
    lengths = {each: each.lengths(graph.time).astype(np.float64) for each in windows if len(each.steps) == most}
    usual = {each: float(np.median(every[: max(1, most - 1)])) for each, every in lengths.items()}
    slowest = max(usual.values())
    unlike = {
        each: float(np.abs(lengths[each][[0, -1]] - np.median(lengths[each])).sum())
        for each in lengths if usual[each] >= (1 - _ALIKE_SHARE) * slowest
    }  # fmt: skip
    limit = min(unlike.values()) + _ALIKE_SHARE * slowest
    return max((each for each in unlike if unlike[each] <= limit), key=lambda each: each.mean(graph.time))


def _in_common(graph: DependencyGraph, chosen: Array) -> Array:
    """Return the ends of the chosen steps that all ranks recorded; of all steps where those are few."""
    acts = graph.activities
    ends = chosen[acts.kind[chosen] == ActivityKind.BOUNDARY]
    number, count = np.unique(acts.step[ends], return_counts=True)
    common = number[count == len(np.unique(acts.rank[ends]))]
    return ends[np.isin(acts.step[ends], common)] if len(common) >= _COMMON_SHARE * len(number) else ends


def _windows(graph: DependencyGraph, ends: Array) -> list[StepWindow]:
    """Return the window of each rank, given the ends of its steps."""
    acts, time = graph.activities, graph.time
    ends = ends[np.lexsort((acts.step[ends], acts.rank[ends]))]
    every = np.flatnonzero(acts.kind == ActivityKind.STEP)
    every = every[np.lexsort((time[2 * every], acts.step[every], acts.rank[every]))]
    key, first = np.unique(_keys(graph, every), return_index=True)
    every = every[first]
    work = _last_work(graph, key)
    windows = []
    for rank in np.unique(acts.rank[ends]).tolist():
        own = ends[acts.rank[ends] == rank]
        row = np.searchsorted(key, _keys(graph, own))
        end = 2 * int(own[-1]) + 1
        if row[-1] + 1 == len(key) or acts.rank[every[row[-1] + 1]] != rank:  # the recording ends with it
            end = _end_of_work(graph, every[acts.rank[every] == rank], work[acts.rank[every] == rank], end)
        windows.append(StepWindow(rank, acts.step[own].astype(np.int64), 2 * every[row].astype(np.int64), end))
    return windows


def _keys(graph: DependencyGraph, rows: Array) -> npt.NDArray[np.int64]:
    """Return a number for the rank and step of each activity."""
    return graph.activities.rank[rows].astype(np.int64) << 32 | graph.activities.step[rows].astype(np.int64)


def _last_work(graph: DependencyGraph, key: Array) -> npt.NDArray[np.int64]:
    """Return the host activity of each step that ends last, -1 for none; the profiler's own functions are no work."""
    acts = graph.activities
    profilers = names_that(_is_profiler, graph.names)[acts.name] & (acts.kind == ActivityKind.PYTHON)
    rows = np.flatnonzero((acts.step >= 0) & ~acts.on_device & ~of_kinds(acts.kind, (ActivityKind.STEP, *ADDED)))
    rows = rows[~profilers[rows]]
    of_step = np.searchsorted(key, _keys(graph, rows))
    rows, of_step = (each[np.argsort(graph.time[2 * rows + 1], kind="stable")] for each in (rows, of_step))
    last = np.full(len(key), -1, np.int64)
    last[of_step] = rows  # the latest is written last
    return last


def _is_profiler(name: str) -> bool:
    return "torch/profiler/" in name or "torch/autograd/profiler" in name


def _end_of_work(graph: DependencyGraph, marks: Array, work: Array, boundary: int) -> int:
    """Return the vertex at which the work of a rank's last step ends.

    Args:
        graph: the job.
        marks: the annotations of all steps of the rank.
        work: the host activity that ends last in each; -1 for none.
        boundary: the end of the last step with its annotation.
    """
    if len(marks) < 2 or (work < 0).any():
        return boundary
    pause = graph.time[2 * marks + 1] - graph.time[2 * work + 1]
    if graph.time[boundary] > graph.time[2 * marks[-1] + 1] or pause[-1] <= pause[:-1].max():
        return boundary
    return 2 * int(work[-1]) + 1
