"""HOST_SYNC: a blocking call returns after the work of the stream, the device or before the event that it awaits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import names_like
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import Calls, await_rows
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.records import (
    TOLERANCE_NS,
    TWO_CLOCKS_NS,
    Answer,
    Hypothesis,
    Plausible,
    Site,
    best,
    in_order,
    records_back,
    returns,
    unresolved_waits,
)
from htagraph.graph.evidence.sites import grouped

__all__ = ["host_sync", "host_syncs"]

Array: TypeAlias = npt.NDArray[Any]
_OWN_NS = 10_000
"""ns: a blocking call that takes no longer may not have waited. Chosen: three times its own cost
(`construction.settle`). Doubled, waits of 10 to 20 µs support no hypothesis."""
_MAX_PLACES = 64
"""Places and streams that are tried as what an event sync awaits. Chosen for time. Doubled, rare places are tried
too."""
_SURE, _LIKELY, _POSSIBLE = 95, 80, 60
"""Percent: confidence of an inferred wait, as in `evidence.stream_waits`."""
_Found: TypeAlias = tuple[Edges, Counter[str], dict[int, int]]
_UNRESOLVED = (
    "calls that wait for a stream or an event: the trace does not say which, and the recorded times refute all"
)


def host_sync(job: Job) -> Edges:
    """Return an edge from the end of each work that a blocking call waited for to the end of that call.

    By ids where the trace has cuda_sync rows, else inferred, call site by call site. Calls whose awaited work was over
    before they began get their edge too: were the work longer, they would wait.
    """
    edges, _, refused = _resolved(job)
    job.refused["host_sync"] = unresolved_waits(job, refused, _UNRESOLVED)
    return edges


def host_syncs(job: Job) -> tuple[Edges, Counter[str]]:
    """Return the edges, and how many blocking calls were resolved and how many not, by reason."""
    return _resolved(job)[:2]


def _resolved(job: Job) -> _Found:
    """Return the edges, what became of the calls, and how many are unresolved, by rank."""
    calls = job.calls
    counts: Counter[str] = Counter()
    syncs = calls.of_kind(ActivityKind.SYNC)
    name = job.activities.name[calls.row[syncs]]
    parts, known = _by_ids(calls, syncs, counts)
    device = names_like(job.naming.device_sync, job.names, name) & ~known
    parts.append(_of_devices(calls, syncs[device], counts))
    left = ~device & ~known
    refused: list[Array] = [np.zeros(0, np.int64)]
    of_event = names_like(job.naming.event_sync, job.names, name)[left]
    parts += _inferred(calls, syncs[left], of_event, refused)
    unknown = np.concatenate(refused)
    counts["refused"] += len(unknown)
    counts["inferred"] += int(left.sum()) - len(unknown)
    ranks = Counter(calls.rank[unknown[_had_work(calls, unknown)]].tolist())
    return Edges.concatenate(parts), counts, dict(ranks)


def _had_work(calls: Calls, call: Array) -> Array:
    """Return before which calls their rank had enqueued work: before others, there was nothing to wait for."""
    out = np.zeros(len(call), np.bool_)
    for rank, lanes in calls.lanes.items():
        for lane in lanes:
            out |= (calls.rank[call] == rank) & (calls.enqueued.last_before(np.full(len(call), lane), call) >= 0)
    return out


def _linked(
    calls: Calls, source: Array, call: Array, provenance: Provenance, confidence: int, tolerance: int = TOLERANCE_NS
) -> Edges:
    """Return edges from works to the calls at some positions, but none whose work ended only after the call."""
    acts, row = calls.job.activities, calls.row[call]
    good = source >= 0
    good &= acts.end[np.maximum(source, 0)] <= acts.end[row] + tolerance
    return Edges.of(2 * source[good] + 1, 2 * row[good] + 1, 0, EdgeKind.HOST_SYNC, provenance, confidence=confidence)


def _by_ids(calls: Calls, syncs: Array, counts: Counter[str]) -> tuple[list[Edges], Array]:
    """Return the edges of calls of which a cuda_sync row or an argument tells, and which calls these are."""
    rows, acts = await_rows(calls), calls.job.activities
    at = np.minimum(rows.position, max(0, len(calls.row) - 1))
    own = np.isin(at, syncs)
    if len(calls.row):
        own &= acts.arg("correlation")[calls.row[at]] == rows.correlation
    event = own & rows.awaits_event & (rows.record_lane >= 0)
    stream = own & ~rows.awaits_event & (rows.lane >= 0)
    record = np.where(rows.record >= 0, rows.record, rows.position)
    told = _told(calls, syncs)
    told[np.isin(syncs, at[own & (rows.awaits_event | (rows.lane >= 0))])] = -1
    of_event = calls.enqueued.last_before(rows.record_lane[event], record[event])
    of_stream = calls.enqueued.last_before(rows.lane[stream], at[stream])
    by_argument = calls.enqueued.last_before(told[told >= 0], syncs[told >= 0])
    counts["observed"] += int(event.sum() + stream.sum() + (told >= 0).sum())
    edges = [
        _linked(calls, source, call, Provenance.OBSERVED, 100, TWO_CLOCKS_NS)
        for source, call in ((of_event, at[event]), (of_stream, at[stream]), (by_argument, syncs[told >= 0]))
    ]
    # a row that names no record names one of before the recording: there is nothing to wait for, and nothing to guess
    return edges, (told >= 0) | np.isin(syncs, at[own & (rows.awaits_event | (rows.lane >= 0))])


def _told(calls: Calls, syncs: Array) -> Array:
    """Return the stream that a call's own arguments name, as those of MTIA do; -1 for none."""
    job, row = calls.job, calls.row[syncs]
    streams = {(lane.rank, lane.device, lane.stream): i for i, lane in enumerate(job.lanes) if lane.stream >= 0}
    columns = (job.activities.rank[row], job.activities.arg("device")[row], job.activities.arg("stream")[row])
    keys = zip(*(column.tolist() for column in columns), strict=True)
    return np.fromiter((streams.get(key, -1) for key in keys), np.int64, len(row))


def _of_devices(calls: Calls, syncs: Array, counts: Counter[str]) -> Edges:
    """Return edges from the last work of every stream to the calls that wait for a device."""
    counts["device"] += len(syncs)
    pairs = [(syncs[calls.rank[syncs] == rank], lane) for rank, lanes in calls.lanes.items() for lane in lanes]
    call = np.concatenate([np.zeros(0, np.int64), *(of_rank for of_rank, _ in pairs)])
    lane = np.concatenate([np.zeros(0, np.int64), *(np.full(len(of_rank), lane) for of_rank, lane in pairs)])
    return _linked(calls, calls.enqueued.last_before(lane, call), call, Provenance.ORDER, 100, TWO_CLOCKS_NS)


def _inferred(calls: Calls, syncs: Array, of_event: Array, refused: list[Array]) -> Iterator[Edges]:
    """Yield the edges of calls that wait for a stream or an event, and no row says which; note those without."""
    acts = calls.job.activities
    clock = {rank: returns(calls, rank) for rank in calls.lanes} if len(syncs) else {}
    for rows in grouped(calls.site[syncs]):
        position = syncs[rows]
        rank = int(calls.rank[position[0]])
        if rank not in calls.lanes:
            refused.append(position)
            continue
        row = calls.row[position]
        site = Site(position, acts.end[row], acts.start[row] + _OWN_NS, clock[rank].window, clock[rank].tolerance)
        guesses = _of_event(calls, position) if of_event[rows[0]] else _of_stream(calls, position)
        answer = best(calls, site, guesses)
        if answer is None:
            refused.append(position)
            continue
        yield _linked(calls, answer.source, position, Provenance.INFERRED, _confidence(answer), clock[rank].tolerance)


def _confidence(answer: Answer) -> int:
    if answer.explained >= max(3, 2 * answer.unexplained):
        return _SURE
    return _LIKELY if answer.explained else _POSSIBLE


def _of_stream(calls: Calls, position: Array) -> Iterator[Hypothesis]:
    """Yield the streams that the calls of a site may wait for: that of the latest launch of the thread first."""
    yield calls.lane_at(calls.before[position]), position, Plausible.YES
    for lane in calls.lanes[int(calls.rank[position[0]])]:
        yield np.full(len(position), lane), position, Plausible.NO


def _of_event(calls: Calls, position: Array) -> Iterator[Hypothesis]:
    """Yield the events that the calls of a site may wait for: records by how far back they are, or in their order."""
    rank = int(calls.rank[position[0]])
    lanes = calls.lanes[rank]
    for back, (record, own) in enumerate(records_back(calls, position)):
        yield own, record, Plausible.NO if back else Plausible.YES
        for lane in lanes[:_MAX_PLACES]:
            yield np.where(record >= 0, lane, -1), record, Plausible.NO
    records = np.sort(calls.records[calls.rank[calls.records] == rank])
    step = calls.job.activities.step[calls.row]
    for rows in sorted(grouped(calls.site[records]), key=len, reverse=True)[:_MAX_PLACES]:
        match, _ = in_order(step[position], position, records[rows], step[records[rows]])
        yield np.where(match >= 0, calls.lane_at(calls.before[np.maximum(match, 0)]), -1), match, Plausible.NO
    if not len(records):
        for lane in lanes:
            yield np.full(len(position), lane), position, Plausible.NO
