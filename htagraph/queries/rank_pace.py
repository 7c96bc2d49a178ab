"""How fast each rank does the work that all do: the time of each activity beside that of the same one on other ranks.

The time of a step is the sum of few long activities, and a recording has few steps. The ratios of all activities tell a
rank that is 2 % slower from chance sooner. Neighbours share what delays them, and are no independent draws: they are
averaged in batches, whose resemblance to the batch before shows how much is shared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.statistics import MAD_TO_DEVIATION
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_times

__all__ = ["rank_pace"]

_BATCHES = 20
"""Batches that a recording is divided into, if it has fewer steps.

Chosen: the usual number for means of batches, few enough for long ones. Doubled, more of what neighbours share lies
between batches, where it has to be estimated."""
_MIN_IN_BATCH = 10
"""Activities in a batch, at least. Chosen: fewer are sums of single draws. Doubled, small jobs have fewer batches."""
_MAX_DEVIATIONS = 4.0
"""Deviations beyond which the ratio of one activity counts no more. Chosen: a stall is not the pace. Doubled, single
stalls widen the spread of batches, and fewer slow ranks are found."""
_FLOOR_NS = 100
"""Added to all times before they are divided, ns: ratios of shorter times are mostly the resolution of clocks.

Chosen: below the shortest kernels and operators (about 1 µs), above the resolution of the timestamps. Doubled, work of
less than 1 µs counts a little less."""


def rank_pace(graph: DependencyGraph, ranks: Array, peer: Array, *, device: bool) -> npt.NDArray[np.float64]:
    """Return how long some ranks take for their work, by rank and batch, relative to the mean of these ranks.

    Of a batch it is the mean of its activities, weighted by the root of their times.

    Args:
        graph: the job.
        ranks: the ranks to compare, as positions in `graph.ranks`.
        peer: of each activity the group of its peers on other ranks (`queries.peers`).
        device: True to compare kernels, False to compare the self times of operators.

    Returns:
        Ratios in the order of time; a column per batch, none where the ranks share too little work.
    """
    acts = graph.activities
    rows, place, time = work_times(graph, ranks, device=device)
    some = (peer[rows] >= 0) & (time > 0)
    rows, place, time = rows[some], place[some], time[some]
    group = np.unique(peer[rows], return_inverse=True)[1]
    shared = np.bincount(group)[group] == len(ranks)
    rows, time = rows[shared], time[shared]
    order = np.lexsort((place[shared], group[shared]))
    rows, time = rows[order].reshape(-1, len(ranks)), time[order].reshape(-1, len(ranks))
    log = np.log(time + _FLOOR_NS)
    log -= log.mean(axis=1)[:, None]
    weight = np.sqrt(time.mean(axis=1))  # neither few long activities nor many short ones alone
    limit = _MAX_DEVIATIONS * MAD_TO_DEVIATION * float(np.median(np.abs(log))) if log.size else 0.0
    batch = _batches(acts.step[rows[:, 0]], acts.start[rows[:, 0]])
    total = np.bincount(batch, weight)
    return np.array([1 + np.bincount(batch, weight * each) / total for each in np.clip(log, -limit, limit).T])


def _batches(step: Array, start: Array) -> npt.NDArray[np.int64]:
    """Return the batch of each activity: parts of a step, as many in each, in the order of time."""
    steps, of_step, size = np.unique(step, return_inverse=True, return_counts=True)
    parts = np.clip(size // _MIN_IN_BATCH, 1, -(-_BATCHES // max(len(steps), 1)))
    order = np.lexsort((start, of_step))
    place = np.empty(len(step), np.int64)
    place[order] = np.arange(len(step)) - (np.cumsum(size) - size)[of_step[order]]
    first = np.cumsum(parts) - parts
    return np.asarray(first[of_step] + place * parts[of_step] // size[of_step], np.int64)
