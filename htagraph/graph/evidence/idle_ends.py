"""Idle streams that go on just as work of another stream ends, though no call says that they wait for it.

The calls may be missing (from before the recording, or not recorded at all), or the work may need a part of the device
that the other work occupied. In both cases it could not start before the other work ended.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.wait_hypotheses import start_window
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["idle_ends"]


def idle_ends(calls: Calls, source: Array, target: Array) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) of waits between streams that only the times tell.

    Args:
        calls: the calls of the job.
        source: the work that is already known to be waited for.
        target: the work that waits for each.
    """
    acts = calls.job.activities
    free = np.full(len(acts), np.iinfo(np.int64).min)
    np.maximum.at(free, target, acts.end[source])
    parts = [_of_rank(calls, rank, free) for rank, lanes in calls.lanes.items() if len(lanes) > 1]
    columns = zip(*parts, strict=True) if parts else ((), (), ())
    first, second, sure = (np.concatenate([np.zeros(0, np.int64), *column]) for column in columns)
    return first, second, sure


def _of_rank(calls: Calls, rank: int, free: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) for one rank.

    Args:
        calls: the calls of the job.
        rank: the rank.
        free: for each activity, when all work had ended that it is known to wait for, ns.
    """
    acts, window = calls.job.activities, start_window(calls, rank, LIMITS.window_ns, LIMITS.started_ns)
    enqueued, lanes = calls.enqueued, calls.lanes[rank]
    work = enqueued.work[slice(*np.searchsorted(enqueued.lane, (lanes.min(), lanes.max() + 1)))]
    work = work[np.lexsort((acts.start[work], acts.lane[work]))]
    behind = np.append(False, acts.lane[work[1:]] == acts.lane[work[:-1]])
    idle_from = np.where(behind, np.append(0, acts.end[work[:-1]]), np.iinfo(np.int64).max)
    cause = acts.cause[work]
    ready = np.where(cause >= 0, acts.start[np.maximum(cause, 0)], np.iinfo(np.int64).min)
    ready = np.maximum(np.maximum(ready, free[work]), idle_from)
    long = (idle_from < acts.start[work]) & (ready + LIMITS.times_window * window <= acts.start[work])
    target, since = work[long], ready[long]
    by_end = work[np.argsort(acts.end[work], kind="stable")]
    ends = acts.end[by_end]
    at = np.searchsorted(ends, acts.start[target] + LIMITS.tick_ns, side="right") - 1
    source = by_end[at]
    before = _enqueued_before(calls, source, target)
    near = (acts.start[target] - acts.end[source] <= window) & (acts.lane[source] != acts.lane[target]) & before
    chances = (at - np.searchsorted(ends, since, side="right") + 1) * window
    sure = 100 - 100 * chances // np.maximum(1, acts.start[target] - since)
    near &= sure >= Confidence.EVEN
    return source[near], target[near], np.minimum(Confidence.LIKELY, sure[near])


def _enqueued_before(calls: Calls, source: Array, target: Array) -> Array:
    """Return which sources were enqueued before their targets, as far as their calls are known."""
    cause = calls.job.activities.cause
    first, second = (np.where(cause[each] >= 0, calls.position[cause[each]], -1) for each in (source, target))
    return np.asarray((first < 0) | (second < 0) | (first < second))
