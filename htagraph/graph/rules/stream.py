"""STREAM: work on one stream runs in the order in which it was enqueued."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["stream"]

_AHEAD_NS = 30_000
"""ns: work launched this long before the work before it ended was in the queue by then. Chosen: several launch
latencies. Doubled, fewer pauses count, and streams of short work have none."""
_MAX_PAUSE_NS = 20_000
"""ns: a longer pause between queued work had another reason. Chosen: pauses of devices are 0.5 to 3 µs. Doubled,
hardly anything: the median decides."""
_MIN_PAUSES = 8
"""Pauses of a stream from which on their median is its own. Chosen. Doubled, small streams take that of the
others."""
_USUAL_PAUSE_NS = 1_000
"""ns: the pause where no stream shows its own. Devices of this decade need about this long. Doubled, work behind
other work starts 1 µs later in a what-if."""


def stream(job: Job) -> Edges:
    """Return an edge to the start of each piece of work from the end of the work before it on its stream.

    Where work overlaps (programmatic dependent launch, branches of a CUDA graph) the later one waits for the start of
    the earlier, and for the end of the last work that was over by then. The nominal lag is the median of the stream's
    short pauses before work that was already waiting in its queue: what the device needs from one to the next.
    """
    acts = job.activities
    usual = _usual_pauses(job)
    sources, targets, lags = [], [], []
    for lane in acts.by_stream():
        start, end = acts.start[lane], acts.end[lane]
        overlaps = end[:-1] > start[1:]
        outlived = np.maximum.accumulate(end)[:-1] > end[:-1]  # by work before it
        source, target = _last_over(lane, start, end, overlaps | outlived)
        sources += [2 * lane[:-1] + ~overlaps, source]
        targets += [2 * lane[1:], target]
        lags += [np.where(overlaps, 0, usual[acts.lane[lane[0]]]), np.zeros(len(source), np.int64)]
    empty = np.zeros(0, np.int64)
    source, target, lag = (np.concatenate([empty, *parts]) for parts in (sources, targets, lags))
    return Edges.of(source, target, lag, EdgeKind.STREAM, Provenance.ORDER)


def _usual_pauses(job: Job) -> dict[int, int]:
    """Return the usual pause of each stream, of one that never ran back to back that of the others."""
    acts = job.activities
    seen = {int(acts.lane[lane[0]]): _pauses(job, lane) for lane in acts.by_stream()}
    known = {lane: int(np.median(pauses)) for lane, pauses in seen.items() if len(pauses) >= _MIN_PAUSES}
    others = int(np.median(list(known.values()))) if known else _USUAL_PAUSE_NS
    return {lane: known.get(lane, others) for lane in seen}


def _pauses(job: Job, lane: np.ndarray) -> np.ndarray:
    acts = job.activities
    pause = acts.start[lane[1:]] - acts.end[lane[:-1]]
    call = acts.cause[lane[1:]]
    queued = (call >= 0) & (acts.start[call] + _AHEAD_NS < acts.end[lane[:-1]])
    return pause[queued & (pause >= 0) & (pause < _MAX_PAUSE_NS)]


def _last_over(
    lane: np.ndarray, start: np.ndarray, end: np.ndarray, unsure: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges to work whose neighbour is not known to end last, from the latest end on the stream before it."""
    late = np.flatnonzero(unsure) + 1
    by_end = np.lexsort((-start, end))
    ends = end[by_end]
    at = np.searchsorted(ends, start[late], side="right") - 1
    # empty work at that very moment may be over "before" the late one begins: only what started earlier precedes
    only_empty = start[by_end[at]] == start[late]
    at = np.where(only_empty, np.searchsorted(ends, start[late]) - 1, at)
    known = at >= 0
    return 2 * lane[by_end[at[known]]] + 1, 2 * lane[late[known]]
