"""How fast each rank does work of the same names, where ranks do different amounts of it by design.

The stages of a pipeline have different layers. A slow device or host takes longer for whatever it does; a stage with
more to do takes longer for some of it. So the name counts whose ratio to the other ranks is smallest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.statistics import MAD_TO_DEVIATION
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_times

__all__ = ["MIN_SHARE_OF_NAME", "rank_pace", "rank_speed", "speed_of_sums"]

MIN_SHARE_OF_NAME = 0.03
"""Share of the compared time that a name takes on every rank, at least. Chosen: rare names vary too much by chance.
Doubled, fewer names are compared, and a rank that is slow in all of them by design is more likely."""
_MIN_NAMES = 3
"""Names that are needed: one or two can be slower by design. Chosen. Doubled, jobs of few operators are not judged."""


def rank_speed(graph: DependencyGraph, ranks: Array, steps: Array, *, device: bool) -> npt.NDArray[np.float64]:
    """Return how long some ranks take for the same work, by rank and step, ns: the time as if all names were as fast.

    Each name's mean time is divided by the median of the ranks; the smallest of these ratios, times the time that ranks
    usually spend in these names in a step, is the rank's value. NaN where too few names are common.

    Args:
        graph: the job.
        ranks: the ranks to compare, as positions in `graph.ranks`.
        steps: the numbers of the steps, ascending.
        device: True to compare kernels, False to compare the self times of operators.
    """
    step_of = graph.activities.step
    out = np.full((len(ranks), len(steps)), np.nan)
    rows, place, time = work_times(graph, ranks, device=device)
    some = (step_of[rows] >= 0) & np.isin(step_of[rows], steps)
    if not some.any():
        return out
    rows, place, time = rows[some], place[some], time[some]
    present, step = np.unique(step_of[rows], return_inverse=True)
    names, name = np.unique(graph.activities.name[rows], return_inverse=True)
    shape = (len(ranks), len(names), len(present))
    cell = np.ravel_multi_index((place, name.ravel(), step.ravel()), shape)
    total = np.bincount(cell, time, int(np.prod(shape))).reshape(shape)
    count = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
    speed = speed_of_sums(total, count, total.sum(axis=(1, 2)))
    if speed is not None:
        out[:, np.searchsorted(steps, present)] = speed
    return out


def speed_of_sums(total: Array, count: Array, whole: Array) -> npt.NDArray[np.float64] | None:
    """Return what `rank_speed` does, by rank and step; None where too few names are common.

    Args:
        total: the time by rank, name and step, ns.
        count: how many activities that is the time of.
        whole: the time of each rank in all names, ns.
    """
    of_rank = total.sum(axis=2) / np.maximum(whole, 1)[:, None]
    common = (of_rank >= MIN_SHARE_OF_NAME).all(axis=0) & (count > 0).all(axis=(0, 2))
    if common.sum() < _MIN_NAMES:
        return None
    mean = total[:, common] / count[:, common]
    usual = float(np.median(total[:, common].sum(axis=1)))
    return np.asarray((mean / np.median(mean, axis=0)).min(axis=1) * usual)


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
