"""How much the mean step of a job differs from run to run: from how much its calls differ from step to step."""

from __future__ import annotations

from typing import Final

import numpy as np

from htagraph.core.arrays import Array, coded, run_starts
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.statistics import MAD_TO_DEVIATION, SEVERAL, middles
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["SHARED", "call_spread", "run_spread"]

SHARED: Final = 0.5
"""Share of a spread within a run, of steps or of calls, that all steps of the run have in common, so that no number of
steps averages it out: where memory lies, how fast the machine is that minute. Measured on 64 jobs of two to four runs
each, half of which compute and half of which sleep: runs vary by 0.4 and 0.9 of the spread of their steps in the
median. Doubled, intervals are up to twice as wide."""
_LEAST: Final = 0.004
"""Relative standard deviation of a job's mean step from run to run where each call always takes the same. Measured on
40 groups of three runs whose work sleeps (0.3 % in the median, 0.5 % at the 80th percentile). Doubled, no interval is
narrower than ± 1.3 %."""
_MOST: Final = 0.016
"""The most that runs differ beyond the spread of their steps, relative. Measured on 50 groups of four runs that compute
on busy cores: with it, 95 % of 320 runs lie within the interval around the mean of the others, and 95 % of those whose
interval is narrower than 6 % (with `_LEAST` alone: 88 and 84 %). Doubled, the interval of such a job is at least ± 5
%."""


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

    The same call is the one at the same place among those of its name in the step of its rank. Work that not every step
    has is compared with the steps that have it, so that steps may differ though their calls do not. It is 0 where no
    call is in three steps. Communication is left out: it waits.
    """
    acts = graph.activities
    lasts = np.where(acts.on_device, acts.duration, graph.own_time)
    is_own = ~of_kinds(acts.kind, (ActivityKind.STEP, *COMMUNICATION, *ADDED))
    rows = np.flatnonzero(is_own & (acts.step >= 0) & (lasts > 0))
    role, lasts = _roles(graph, rows), lasts[rows]
    rows_of_role = np.bincount(role)[role]
    several = rows_of_role >= SEVERAL
    rows, role, lasts = rows[several], role[several], lasts[several]
    weight = _time_on_path(graph)[rows]
    if not weight.any():
        return 0.0
    usual = np.add(*middles(lasts, role)) / 2
    off = np.abs(lasts - usual)
    deviation = MAD_TO_DEVIATION * np.add(*middles(off, role)) / 2
    return float(np.average(deviation / usual, weights=weight))


def _roles(graph: DependencyGraph, rows: Array) -> Array:
    """Return a number for each of some activities: the same for the same call in other steps of its rank."""
    acts = graph.activities
    call = coded(acts.rank[rows], acts.name[rows], acts.step[rows])
    order = np.lexsort((acts.start[rows], call))
    starts = run_starts(call[order])
    place = np.zeros(len(rows), np.int64)
    place[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    return coded(acts.rank[rows], acts.name[rows], place)


def _time_on_path(graph: DependencyGraph) -> Array:
    """Return how much of each activity is on the critical path of the job, ns."""
    from htagraph.core import traverse  # numba takes a moment to load

    acts, edges = graph.activities, graph.edges
    ends = 2 * np.flatnonzero(graph.awake) + 1
    if not len(ends):
        return np.zeros(len(acts), np.int64)
    last = int(ends[np.argmax(graph.time[ends])])
    path = traverse.walk_back(graph.binding, edges.source, graph.time, last, np.iinfo(np.int64).min)
    on_path = graph.binding[path[1:]]
    on_path = on_path[(edges.activity[on_path] >= 0) & (edges.lag[on_path] > 0)]
    time = np.bincount(edges.activity[on_path], edges.lag[on_path], len(acts))
    return time.astype(np.int64)
