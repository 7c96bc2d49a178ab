"""QUEUE_FULL: a launch blocks while as many works are outstanding on its stream as its queue holds."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.records import TOLERANCE_NS
from htagraph.graph.evidence.sites import mixed

__all__ = ["queue_full"]

_LONG_RATIO = 4
"""Times its own cost that a launch takes which visibly blocked. Chosen: launches vary by less. Doubled, short blocks
are not seen."""
_LONG_NS = 10_000
"""ns: and by how much longer it takes at least. Chosen, as above."""
_MIN_DEPTH = 16
"""Kernels and copies that a queue holds at least: blocked launches with fewer outstanding had another reason. Queues
of CUDA and ROCm hold 1024 and more. Doubled, nothing changes on real devices."""
_MAX_RETURN_NS = 20_000
"""ns: a blocked launch returns this soon after its place in the queue is free. Chosen: a few µs are usual. Doubled,
chance agrees more often."""
_MIN_BLOCKED = 3
"""Blocked launches of a stream from which on they show its depth. Chosen: two may agree by chance. Doubled, streams
that blocked 3 to 5 times get no edges."""
_MIN_AGREEING = 0.8
"""Share of a stream's blocked launches that must agree on the depth. Chosen. It cannot be doubled; at 1 one launch
that was slow for another reason hides the queue."""
_CONFIDENCE = 90
"""Percent: confidence of the edges. Chosen. Shown, and used by `acyclic`."""


def queue_full(job: Job) -> Edges:
    """Return an edge to the end of each launch that blocked from the end of the work whose place in the queue it took.

    How deep the queue of a stream is shows where launches took long: they returned when all but that many of the works
    before them were over. Streams whose long launches do not agree on that get no edges.
    """
    acts, calls = job.activities, job.calls
    enqueued = calls.enqueued
    sources, targets = [], []
    own = _own_cost(calls)
    long = acts.duration > np.maximum(_LONG_RATIO * own, own + _LONG_NS)
    cuts = np.flatnonzero(np.diff(enqueued.lane)) + 1
    for part in np.split(np.arange(len(enqueued.work)), cuts) if len(enqueued.work) else []:
        work = enqueued.work[part]
        call = acts.cause[work]
        single = (call >= 0) & np.append(True, call[1:] != call[:-1]) & np.append(call[1:] != call[:-1], True)
        end = np.maximum.accumulate(acts.end[work])
        at = np.flatnonzero(single)
        depth = _depth(end, acts.start[call[at]], acts.end[call[at]], at, long[call[at]])
        at = at[at >= depth] if depth else at[:0]
        source, blocked = at - depth, call[at]
        waited = (end[source] > acts.start[blocked] + own[blocked]) & (end[source] <= acts.end[blocked] + TOLERANCE_NS)
        sources.append(work[source[waited]])
        targets.append(blocked[waited])
    none = np.zeros(0, np.int64)
    source, target = np.concatenate([none, *sources]), np.concatenate([none, *targets])
    return Edges.of(2 * source + 1, 2 * target + 1, 0, EdgeKind.QUEUE_FULL, Provenance.INFERRED, confidence=_CONFIDENCE)


def _own_cost(calls: Calls) -> np.ndarray:
    """Return for each launch what others of its name take that do not block, ns; the largest number for the rest."""
    acts = calls.job.activities
    rows = np.flatnonzero(acts.kind == ActivityKind.LAUNCH)
    out = np.full(len(acts), np.iinfo(np.int64).max // (2 * _LONG_RATIO))
    if len(rows):
        group = np.unique(mixed(acts.rank[rows], acts.name[rows]), return_inverse=True)[1].ravel()
        order = np.lexsort((acts.duration[rows], group))
        count = np.bincount(group)
        quartile = np.cumsum(count) - count + count // 4  # of many, most may have blocked
        out[rows] = acts.duration[rows][order][quartile][group]
    return out


def _depth(end: np.ndarray, began: np.ndarray, returned: np.ndarray, at: np.ndarray, long: np.ndarray) -> int:
    """Return how many works a stream's queue holds, 0 if it was never full for sure.

    Args:
        end: when all works of the stream up to each were over, ns.
        began: start of launches, ns.
        returned: their end, ns.
        at: place of their work on the stream.
        long: which of them took visibly long.
    """
    over = np.searchsorted(end, returned, side="right") - 1  # the last work over when the launch returned
    depth = at - over
    waited = long & (over >= 0) & (depth >= _MIN_DEPTH) & (end[np.maximum(over, 0)] > began)
    if waited.sum() < _MIN_BLOCKED:
        return 0
    depths, counts = np.unique(depth[waited], return_counts=True)
    common = int(depths[counts.argmax()])
    source = np.maximum(at - common, 0)
    explained = waited & (end[source] <= returned + TOLERANCE_NS) & (returned - end[source] <= _MAX_RETURN_NS)
    return common if explained.sum() >= _MIN_AGREEING * waited.sum() else 0
