"""QUEUE_FULL: end of the kernel or copy that frees a place in a full stream queue → end of the launch that was blocked.

Lag 0 (`fit.settle` adds the time of the return). Inferred: the queue length at which long launches return. Where a
profiler recorded no calls, operators were blocked. One that went on in the middle of device work, recorded as a whole,
waited for a part of the work: the edge leads from the start of the work, and has the time until then as lag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, coded, joined, looked_up
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.statistics import ordered_by
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import Calls, launched_by_operators
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
    of_calls = Edges.of(
        2 * source + 1, 2 * target + 1, 0, EdgeKind.QUEUE_FULL, Provenance.INFERRED, confidence=Confidence.SEEN
    )
    return Edges.concatenate([of_calls, *_of_operators(job)])


class _Stretches(NamedTuple):
    """Stretches of host threads that took long and end with the end of an activity; one row each."""

    target: Ints
    """The vertex at the end of the stretch."""

    begun: Ints
    """The moment at which the stretch begins, ns."""

    returned: Ints
    """The moment at which the stretch ends, ns."""

    usual: Ints
    """The usual length of a stretch between the same two moments, ns."""


def _of_operators(job: RecordedJob) -> Iterator[Edges]:
    """Yield the edges of each stream whose work has operators in place of launches."""
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    work = work[launched_by_operators(job, work)]
    if not len(work):
        return
    begun = acts.start[acts.cause[work]]
    order = np.lexsort((acts.start[work], begun, acts.lane[work]))
    work = work[order]
    bounds = np.flatnonzero(np.diff(acts.lane[work])) + 1
    for of_stream in np.split(work, bounds):
        stretches = _long_stretches(job, int(acts.rank[of_stream[0]]))
        yield _blocked_by(job, of_stream, stretches)


def _long_stretches(job: RecordedJob, rank: int) -> _Stretches:
    """Return the stretches of a rank's threads that took visibly longer than usual between the same two moments."""
    acts = job.activities
    source, target, _ = job.slices
    is_end = (target & 1 == 1) & (acts.rank[target >> 1] == rank)
    source = source[is_end]
    target = target[is_end]
    begun = job.moment(source)
    returned = job.moment(target)
    lasts = returned - begun
    place = coded(
        acts.name[source >> 1],
        source & 1,
        acts.name[target >> 1],
    )
    places, quartile = ordered_by(place, lasts, lambda count: count // 4)  # most of the stretches may have blocked
    usual = looked_up(places, quartile, place)
    is_long = lasts > np.maximum(LIMITS.times_usual * usual, usual + LIMITS.jitter_ns)
    order = np.argsort(returned[is_long], kind="stable")
    return _Stretches(
        target[is_long][order],
        begun[is_long][order],
        returned[is_long][order],
        usual[is_long][order],
    )


def _blocked_by(job: RecordedJob, work: Ints, stretches: _Stretches) -> Edges:
    """Return the edges to the stretches that were blocked at the full queue of a stream.

    Args:
        job: the recorded job.
        work: the work of the stream in the order in which operators enqueued it.
        stretches: long stretches of host threads.
    """
    acts = job.activities
    enqueued = acts.start[acts.cause[work]]
    end = np.maximum.accumulate(job.moment(2 * work + 1))
    at = np.searchsorted(enqueued, stretches.returned) - 1
    extra = stretches.returned - stretches.begun - stretches.usual
    depth = _depth(end, stretches.begun, stretches.returned, at, extra)
    is_full = at >= depth if depth else np.zeros(len(at), np.bool_)
    freed = work[np.maximum(at - depth, 0)]
    starts = job.moment(2 * freed)
    ends = job.moment(2 * freed + 1)
    own = stretches.begun + stretches.usual
    at_end = is_full & (ends > own) & (ends <= stretches.returned + LIMITS.tick_ns)
    inside = is_full & (starts < stretches.returned) & (ends > stretches.returned + LIMITS.tick_ns)
    blocked = at_end | inside
    vertex = np.where(inside, 2 * freed, 2 * freed + 1)[blocked]
    lag = np.where(inside, stretches.returned - starts, 0)[blocked]
    return Edges.of(
        vertex,
        stretches.target[blocked],
        lag,
        EdgeKind.QUEUE_FULL,
        Provenance.INFERRED,
        confidence=Confidence.SEEN,
        activity=np.where(inside, freed, -1)[blocked],
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
    first = np.searchsorted(end, np.maximum(began, returned - LIMITS.long_call_ns), side="right")
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
