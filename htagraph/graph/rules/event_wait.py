"""EVENT_WAIT: end of the last work enqueued before an event's record → start of the first work after a stream's wait.

Lag 0 (`fit.settle` adds the device's pause). Known by ids where the trace has cuda_sync rows, else inferred.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from htagraph.core.arrays import Array, spread
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import Calls, mixed
from htagraph.graph.evidence.cuda_graphs import graph_branches
from htagraph.graph.evidence.graph_nodes import node_waits
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.stream_waits import StreamWaits, boundary_waits, idle_ends, stream_waits
from htagraph.graph.evidence.waits import unresolved_waits
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["event_wait"]

_UNRESOLVED = "waits of streams for events: the trace does not say which, and the recorded times refute every guess"


def event_wait(job: RecordedJob) -> Edges:
    """Return an edge from the end of the work that a stream waited for to the start of the first work that waited.

    Ids give both where the trace has cuda_sync rows; else they are inferred, call site by call site. Waits that no
    hypothesis explains are noted in the job, except those on a communication library's own streams and those that no
    recorded work follows. On a device that executes one thing at a time, each kernel waits for the one before.
    Nodes of CUDA graphs wait as the profiler recorded the graph; where it did not, for branches that times show.
    """
    calls, refused = job.calls, Counter[int]()
    known, ranks = _by_ids(calls)
    parts = [known]
    for rank in sorted(calls.lanes):
        if rank not in ranks and len(calls.lanes[rank]) > 1:
            waits = calls.of_kind_on(rank, ActivityKind.WAIT)
            own = stream_waits(calls, rank, refused) if len(waits) else boundary_waits(calls, rank)
            parts += own
    job.refused["event_wait"] = unresolved_waits(job, refused, _UNRESOLVED)
    edges = _edges(calls, StreamWaits.concatenate(parts))
    recorded = node_waits(job)
    between_nodes = Edges.of(2 * recorded.source + 1, 2 * recorded.target, 0, EdgeKind.EVENT_WAIT, Provenance.OBSERVED)
    edges = Edges.concatenate([edges, between_nodes, _inferred(*graph_branches(job, recorded)), _of_serial(job)])
    return Edges.concatenate([edges, _inferred(*idle_ends(calls, edges.source >> 1, edges.target >> 1))])


def _of_serial(job: RecordedJob) -> Edges:
    """Return the edges of devices that execute one thing at a time: into kernels, and into the ends of waits."""
    serial = job.serial_work
    source = np.concatenate((2 * serial.before + 1, 2 * serial.ended + 1))
    target = np.concatenate((2 * serial.after, 2 * serial.waited + 1))
    return Edges.of(source, target, 0, EdgeKind.EVENT_WAIT, Provenance.INFERRED, confidence=Confidence.SEEN)


def _inferred(source: Array, target: Array, confidence: Array) -> Edges:
    return Edges.of(
        2 * source + 1, 2 * target, 0, EdgeKind.EVENT_WAIT, Provenance.INFERRED, confidence=confidence
    )  # fmt: skip


def _by_ids(calls: Calls) -> tuple[StreamWaits, set[int]]:
    """Return the waits that cuda_sync rows name, and the ranks whose rows name records."""
    rows = calls.job.await_rows
    waits = np.flatnonzero(rows.awaits_event & (rows.lane >= 0))
    ok = (rows.record_lane[waits] >= 0) & (rows.record_lane[waits] != rows.lane[waits])
    waits = waits[ok]
    # rows from before 2023-09 name the stream of the record but not the record: take the wait as its latest moment
    named = rows.record[waits] >= 0
    record = np.where(named, rows.record[waits], rows.position[waits])
    return StreamWaits(
        rows.lane[waits], rows.position[waits], rows.record_lane[waits], record,
        np.where(named, Provenance.OBSERVED, Provenance.INFERRED), np.where(named, 100, Confidence.SURE),
    ), set(rows.rank[rows.names_records].tolist())  # fmt: skip


def _edges(calls: Calls, waits: StreamWaits) -> Edges:
    """Return the edges of waits; a stream that waits for a record also waits for what the recording stream waits for.

    The second kind is needed where the recording stream had a wait pending and nothing enqueued after it.
    """
    acts, enqueued = calls.job.activities, calls.enqueued
    target = enqueued.first_from(waits.lane, waits.position)
    source = enqueued.last_before(waits.record_lane, waits.record)
    wait = np.arange(len(target))
    candidates = [(source, target, wait)]
    order = np.lexsort((waits.position, waits.lane))
    key = waits.lane[order] * enqueued.stride + waits.position[order]
    via = wait
    for _ in range(LIMITS.few):
        via_wait, via = _pending(calls, waits, order, key, via)
        wait = wait[via_wait]
        if not len(wait):
            break
        candidates.append((source[via], target[wait], wait))
    indirect = np.repeat(np.arange(len(candidates)) > 0, [len(sources) for sources, _, _ in candidates])
    source, target, wait = (np.concatenate(column) for column in zip(*candidates, strict=True))
    good = (source >= 0) & (target >= 0) & (acts.lane[source] != acts.lane[target])
    good[indirect] &= _never_refuted(calls, source[indirect], target[indirect], good[indirect])
    source, target, wait = source[good], target[good], wait[good]
    _, first = np.unique(source * len(acts) + target, return_index=True)
    source, target, wait = source[first], target[first], wait[first]
    return Edges.of(
        2 * source + 1, 2 * target, 0, EdgeKind.EVENT_WAIT, waits.provenance[wait], confidence=waits.confidence[wait]
    )


def _never_refuted(calls: Calls, source: Array, target: Array, known: Array) -> Array:
    """Return which (source, target) pairs are of two streams for which every source ended before its target started."""
    acts = calls.job.activities
    late = known & (acts.end[source] > acts.start[target] + LIMITS.tick_ns)
    streams = mixed(acts.lane[source], acts.lane[target])
    return ~np.isin(streams, streams[late])


def _pending(calls: Calls, waits: StreamWaits, order: Array, key: Array, via: Array) -> tuple[Array, Array]:
    """Return pairs (index into `via`, wait that was pending on its recording stream when the event was recorded)."""
    stride = calls.enqueued.stride
    lane, record = waits.record_lane[via], waits.record[via]
    source = calls.enqueued.last_before(lane, record)
    before = calls.job.activities.cause[np.maximum(source, 0)]
    since = np.where((source >= 0) & (before >= 0), calls.position[np.maximum(before, 0)], -1)
    low = np.searchsorted(key, lane * stride + since, side="right")
    high = np.searchsorted(key, lane * stride + record)
    owner, number = spread(low, high)
    return owner, order[number]
