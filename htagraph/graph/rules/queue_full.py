"""QUEUE_FULL: end of the kernel or copy that frees a place in a full stream queue → end of the launch that was blocked.

Lag 0 (`fit.settle` adds the time of the return). Inferred: the queue length at which long launches return.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import coded, joined, looked_up
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.statistics import ordered_by
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["queue_full"]


def queue_full(job: RecordedJob) -> Edges:
    """Return an edge from the end of the kernel or copy that freed a place in the queue to the end of a blocked launch.

    The launches that took long show how much the queue of their stream holds: each returned when all but that many of
    the kernels and copies enqueued before it had ended. Streams whose long launches do not agree get no edges.
    """
    acts, calls = job.activities, job.calls
    enqueued = calls.enqueued
    parts = []
    own = _own_cost(calls)
    long = acts.duration > np.maximum(LIMITS.times_usual * own, own + LIMITS.jitter_ns)
    extra = np.where(long, acts.duration - own, 0)
    cuts = np.flatnonzero(np.diff(enqueued.lane)) + 1
    for part in np.split(np.arange(len(enqueued.work)), cuts) if len(enqueued.work) else []:
        work = enqueued.work[part]
        call = acts.cause[work]
        single = (call >= 0) & np.append(True, call[1:] != call[:-1]) & np.append(call[1:] != call[:-1], True)
        end = np.maximum.accumulate(acts.end[work])
        at = np.flatnonzero(single)
        depth = _depth(end, acts.start[call[at]], acts.end[call[at]], at, extra[call[at]])
        at = at[at >= depth] if depth else at[:0]
        source, blocked = at - depth, call[at]
        waited = end[source] > acts.start[blocked] + own[blocked]
        waited &= end[source] <= acts.end[blocked] + LIMITS.tick_ns
        parts.append((work[source[waited]], blocked[waited]))
    source, target = joined(parts, 2)
    return Edges.of(
        2 * source + 1, 2 * target + 1, 0, EdgeKind.QUEUE_FULL, Provenance.INFERRED, confidence=Confidence.SEEN
    )


def _own_cost(calls: Calls) -> np.ndarray:
    """Return the usual duration of each launch, ns: the lower quartile of its rank's calls of that name."""
    acts = calls.job.activities
    rows = np.flatnonzero(acts.kind == ActivityKind.LAUNCH)
    out = np.full(len(acts), np.iinfo(np.int64).max // (2 * LIMITS.times_usual))  # nothing else takes so long
    group = coded(acts.rank[rows], acts.name[rows])
    known, quartile = ordered_by(group, acts.duration[rows], lambda count: count // 4)
    out[rows] = looked_up(known, quartile, group)  # not the median: most launches may have blocked
    return out


def _depth(end: np.ndarray, began: np.ndarray, returned: np.ndarray, at: np.ndarray, extra: np.ndarray) -> int:
    """Return how many kernels and copies a stream's queue holds, or 0 if the launches do not show it.

    Each blocked launch returned shortly after one of the kernels that ended just before, which gives a range of
    lengths; the queue's length is in the ranges of most of the blocked time, the largest such number. Times are in ns:
    `end` is the latest end up to and including each kernel or copy of the stream, `extra` by how much each launch took
    visibly longer than usual, 0 for the others. `at` is the position on the stream of what each launch enqueued.
    """
    last = np.searchsorted(end, returned + LIMITS.tick_ns, side="right") - 1  # the last that had ended when it returned
    first = np.searchsorted(end, np.maximum(began, returned - LIMITS.slow_return_ns), side="right")
    some = np.flatnonzero((extra > 0) & (last >= 0) & (at - last >= LIMITS.queue) & (end[np.maximum(last, 0)] > began))
    if not len(some):
        return 0
    clear = some[first[some] <= last[some]]
    edges = np.concatenate((at[clear] - last[clear], at[clear] - first[clear] + 1))
    weight = np.concatenate((extra[clear], -extra[clear]))
    number = np.repeat((1, -1), len(clear))
    order = np.argsort(edges, kind="stable")
    edges, weight, number = edges[order], np.cumsum(weight[order]), np.cumsum(number[order])
    ends = np.append(edges[1:] != edges[:-1], False)[: len(edges)]  # numbers change behind the last of equal ones
    if not ends.any():
        return 0
    best = int(np.flatnonzero(ends)[weight[ends].argmax()])
    agree = number[best] >= LIMITS.often and weight[best] >= LIMITS.typical * extra[some].sum()
    return int(edges[best + 1]) - 1 if agree else 0
