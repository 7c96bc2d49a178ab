"""What had been enqueued on the streams of a rank before calls that wait for all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.evidence.call_sites import grouped
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.tolerances import LIMITS

__all__ = ["last_ends", "work_before"]


def work_before(calls: Calls, rank: int, position: Array, thread: Array) -> tuple[Array, Array]:
    """Return pairs (last work on a stream before a call, index of the call), one per stream with work before the call.

    On very many streams, only those count on which work was enqueued since the thread's previous one of these calls:
    that one waited for the rest. So there are never more pairs than grow with the work.

    Args:
        calls: the calls of the job.
        rank: the rank of the calls.
        position: of each call, or where a call that does not count would be; ascending on each thread.
        thread: the lane of each call's thread.
    """
    none = np.zeros(0, np.int64)
    lanes = calls.lanes.get(rank, none)
    sources, owners = [none], [none]
    if len(lanes) <= 2 * LIMITS.tried:
        for lane in lanes.tolist():
            source = calls.enqueued.last_before(np.full(len(position), lane), position)
            sources.append(source[source >= 0])
            owners.append(np.flatnonzero(source >= 0))
        return np.concatenate(sources), np.concatenate(owners)
    enqueued = calls.enqueued
    own = slice(*np.searchsorted(enqueued.lane, (lanes.min(), lanes.max() + 1)))
    lane, at = enqueued.lane[own], enqueued.key[own] - enqueued.lane[own] * enqueued.stride - 1
    for rows in grouped(thread):
        first = np.searchsorted(position[rows], at, side="right")  # the first of the calls after it was enqueued
        last = np.append((lane[1:] != lane[:-1]) | (first[1:] != first[:-1]), True) & (first < len(rows))
        sources.append(enqueued.latest[own][last])
        owners.append(rows[first[last]])
    return np.concatenate(sources), np.concatenate(owners)


def last_ends(calls: Calls, rank: int, position: Array) -> npt.NDArray[np.int64]:
    """Return when the last of all work ended that had been enqueued on a rank before each call, ns.

    It is the smallest integer where there was none.

    Args:
        calls: the calls of the job.
        rank: the rank of the calls.
        position: of each call, or where a call that does not count would be.
    """
    enqueued, lanes = calls.enqueued, calls.lanes.get(rank, np.zeros(0, np.int64))
    own = slice(*np.searchsorted(enqueued.lane, (lanes.min(), lanes.max() + 1))) if len(lanes) else slice(0, 0)
    at = enqueued.key[own] - enqueued.lane[own] * enqueued.stride - 1
    order = np.argsort(at, kind="stable")
    ends = np.maximum.accumulate(calls.job.activities.end[enqueued.work[own]][order])
    none = np.iinfo(np.int64).min
    return np.append(none, ends)[np.searchsorted(at[order], position)]
