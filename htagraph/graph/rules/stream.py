"""STREAM: end of a kernel or copy → start of the next one on its stream. Lag: the device's pause between two."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, joined
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["stream"]


def stream(job: RecordedJob) -> Edges:
    """Return an edge from the end of each kernel, copy or memset to the start of the next one on its stream.

    Where two overlap (programmatic dependent launch, branches of a CUDA graph), the later one waits for the start of
    the earlier one, and for the latest end on the stream before its own start. The lag is the median of the stream's
    short pauses before kernels that were already queued: the time the device needs from one to the next.
    """
    acts = job.activities
    usual = _usual_pauses(job)
    parts = []
    for lane in acts.by_stream():
        start, end = acts.start[lane], acts.end[lane]
        overlaps = end[:-1] > start[1:]
        outlived = np.maximum.accumulate(end)[:-1] > end[:-1]  # something before it on the stream ends later
        source, target = _last_over(lane, start, end, overlaps | outlived)
        lag = np.where(overlaps, 0, usual[acts.lane[lane[0]]])
        parts += [(2 * lane[:-1] + ~overlaps, 2 * lane[1:], lag), (source, target, np.zeros(len(source), np.int64))]
    source, target, lag = joined(parts, 3)
    return Edges.of(source, target, lag, EdgeKind.STREAM, Provenance.ORDER)


def _usual_pauses(job: RecordedJob) -> dict[int, int]:
    """Return the usual pause, ns, by stream; a stream with too few pauses gets the median of the other streams."""
    acts = job.activities
    by_stream = {int(acts.lane[lane[0]]): _pauses(job, lane) for lane in acts.by_stream()}
    known = {lane: int(np.median(pauses)) for lane, pauses in by_stream.items() if len(pauses) >= LIMITS.few}
    others = int(np.median(list(known.values()))) if known else LIMITS.pause_ns
    return {lane: known.get(lane, others) for lane in by_stream}


def _pauses(job: RecordedJob, lane: Array) -> Array:
    """Return the short pauses, ns, before kernels and copies of a stream that were already queued."""
    acts = job.activities
    pause = acts.start[lane[1:]] - acts.end[lane[:-1]]
    call = acts.cause[lane[1:]]
    queued = (call >= 0) & (acts.start[call] + LIMITS.queued_ns < acts.end[lane[:-1]])
    return pause[queued & (pause >= 0) & (pause < LIMITS.long_pause_ns)]


def _last_over(lane: Array, start: Array, end: Array, unsure: Array) -> tuple[Array, Array]:
    """Return (source, target) vertices from the latest end on a stream to each start whose predecessor is unsure."""
    late = np.flatnonzero(unsure) + 1
    by_end = np.lexsort((-start, end))
    ends = end[by_end]
    at = np.searchsorted(ends, start[late], side="right") - 1
    # an activity of length 0 at that very moment also ends by then: only what started earlier precedes
    only_empty = start[by_end[at]] == start[late]
    at = np.where(only_empty, np.searchsorted(ends, start[late]) - 1, at)
    known = at >= 0
    return 2 * lane[by_end[at[known]]] + 1, 2 * lane[late[known]]
