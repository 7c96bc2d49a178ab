"""How much the mean step of a job differs from run to run: from how much its calls differ from step to step."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, coded, run_starts
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.statistics import MAD_TO_DEVIATION, SEVERAL, middles
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["SHARED", "call_spread", "run_spread"]

SHARED: Final = 0.5
"""Share of a spread within a run, of steps or of calls, that all steps of the run have in common, so that no number of
steps averages it out: where memory lies, how fast the machine is that minute. Measured on 64 jobs of two to four runs
each, half with computation and half with sleep: runs vary by 0.4 and 0.9 of the spread of their steps in the
median. Doubled, intervals are up to twice as wide."""
_LEAST: Final = 0.004
"""Relative standard deviation of a job's mean step from run to run where each call always takes the same. Measured on
40 groups of three runs whose work sleeps (0.3 % in the median, 0.5 % at the 80th percentile). Doubled, no interval is
narrower than ± 1.3 %."""
_MOST: Final = 0.016
"""The most that runs differ beyond the spread of their steps, relative. Measured on 50 groups of four runs that compute
on busy cores: with it, 95 % of 320 runs lie within the interval around the mean of the rest, and 95 % of all runs with
an interval narrower than 6 % (with `_LEAST` alone: 88 and 84 %). Doubled, the interval of a job on busy cores is at
least ± 5 %."""


@once
def run_spread(graph: DependencyGraph) -> float:
    """Return the relative standard deviation of a job's mean step from run to run, beside the spread of its steps.

    Example:
        >>> import htagraph as hg
        >>> 0.004 <= run_spread(hg.load("data/demo")) <= 0.017
        True
    """
    return float(np.hypot(_LEAST, min(_MOST, SHARED * call_spread(graph))))


def call_spread(graph: DependencyGraph) -> float:
    """Return how much a call differs from the same call of other steps, relative: the mean over the critical path.

    The same call is the one at the same place among the calls of its name in the step of its rank. Work of some steps
    is compared with the steps that have it, so that steps may differ though their calls do not. It is 0 where no
    call is in three steps. Communication is left out: it waits.
    """
    acts = graph.activities
    lasts = np.where(acts.on_device, acts.duration, graph.own_time)
    is_own = ~of_kinds(acts.kind, (ActivityKind.STEP, *COMMUNICATION, *ADDED))
    rows = np.flatnonzero(is_own & (acts.step >= 0) & (lasts > 0))
    role = _roles(graph, rows)
    count = np.bincount(role)[role]
    is_repeated = count >= SEVERAL
    rows = rows[is_repeated]
    role = role[is_repeated]
    lasts = lasts[rows]
    weight = _time_on_path(graph)[rows]
    if not weight.any():
        return 0.0
    usual = _medians(lasts, role)
    off = np.abs(lasts - usual)
    deviation = MAD_TO_DEVIATION * _medians(off, role)
    return float(np.average(deviation / usual, weights=weight))


def _medians(values: Array, group: Array) -> npt.NDArray[np.float64]:
    """Return the median of the group of each value."""
    low, high = middles(values, group)
    middle: npt.NDArray[np.float64] = (low + high) / 2
    return middle


def _roles(graph: DependencyGraph, rows: Array) -> Array:
    """Return a number for each of some activities: the same for the same call in other steps of its rank."""
    acts = graph.activities
    call = coded(acts.rank[rows], acts.name[rows], acts.step[rows])
    order = np.lexsort((acts.start[rows], call))
    starts = run_starts(call[order])
    lengths = np.diff(np.append(starts, len(rows)))
    first = np.repeat(starts, lengths)
    place = np.zeros(len(rows), np.int64)
    place[order] = np.arange(len(rows)) - first
    return coded(acts.rank[rows], acts.name[rows], place)


def _time_on_path(graph: DependencyGraph) -> Array:
    """Return how much of each activity is on the critical path of the job, ns."""
    from htagraph.core import traverse  # numba takes a moment to load

    acts = graph.activities
    edges = graph.edges
    ends = 2 * np.flatnonzero(graph.awake) + 1
    if not len(ends):
        return np.zeros(len(acts), np.int64)
    latest = np.argmax(graph.time[ends])
    last = int(ends[latest])
    begin = np.iinfo(np.int64).min
    path = traverse.walk_back(graph.binding, edges.source, graph.time, last, begin)
    on_path = graph.binding[path[1:]]
    is_timed = (edges.activity[on_path] >= 0) & (edges.lag[on_path] > 0)
    timed = on_path[is_timed]
    time = np.bincount(edges.activity[timed], edges.lag[timed], len(acts))
    return time.astype(np.int64)
