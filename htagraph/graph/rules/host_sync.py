"""HOST_SYNC: end of the last work that a blocking call waits for (of a stream, a device, before an event) → its end.

Lag 0 (`fit.settle` adds the return time). Known by ids where the trace has cuda_sync rows, else inferred. A
call that waits for the device before it does its own work, such as `cudaFree`, has the time of that work as lag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import names_like
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import Calls, grouped, last_ends, work_before
from htagraph.graph.evidence.device_waits import implicit_syncs
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.waits import (
    Answer,
    Hypothesis,
    Ordered,
    Plausible,
    Site,
    best,
    records_back,
    returns,
    unresolved_waits,
)
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["host_sync"]

_UNRESOLVED = (
    "calls that wait for a stream or an event: the trace does not say which, and the recorded times refute all"
)


def host_sync(job: RecordedJob) -> Edges:
    """Return an edge from the end of the last work that each blocking call waits for to the end of that call.

    Ids give it where the trace has cuda_sync rows; else it is inferred, call site by call site. A call gets its edge
    even if the work had ended before it began: if the work took longer, the call would wait.
    """
    calls = job.calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    name = job.activities.name[calls.row[syncs]]
    parts, known = _by_ids(calls, syncs)
    device = names_like(job.naming.device_sync, job.names, name) & ~known
    last, number = work_before(calls, calls.rank[syncs[device]], syncs[device], calls.thread[syncs[device]])
    parts.append(_linked(calls, last, syncs[device][number], Provenance.ORDER, 100, LIMITS.two_clocks_ns))
    left = ~device & ~known
    refused: list[Array] = [np.zeros(0, np.int64)]
    of_event = names_like(job.naming.event_sync, job.names, name)[left]
    parts += _inferred(calls, syncs[left], of_event, refused)
    unknown = np.concatenate(refused)
    last, call, own, sure = implicit_syncs(calls)
    kinds = EdgeKind.HOST_SYNC, Provenance.INFERRED  # the lag is what the call does after the wait, and its own time
    implicit = Edges.of(2 * last + 1, 2 * call + 1, own, *kinds, confidence=sure, activity=call)
    parts += [implicit, _polled(job)]
    had_work = last_ends(calls, calls.rank[unknown], unknown) > np.iinfo(np.int64).min  # others wait for nothing
    by_rank = Counter(calls.rank[unknown[had_work]].tolist())
    job.refused["host_sync"] = unresolved_waits(job, by_rank, _UNRESOLVED)
    return Edges.concatenate(parts)


def _linked(
    calls: Calls, source: Array, call: Array, provenance: Provenance, confidence: int | Array,
    tolerance: int = LIMITS.tick_ns,
) -> Edges:  # fmt: skip
    """Return the edges from kernels and copies to the calls at some positions, without those that ended after the call.

    A source (-1 for none) may seem to end up to `tolerance` ns after the call, by the error of the clocks.
    """
    acts, row = calls.job.activities, calls.row[call]
    good = source >= 0
    good &= acts.end[np.maximum(source, 0)] <= acts.end[row] + tolerance
    percent = np.broadcast_to(confidence, len(call))[good]
    return Edges.of(2 * source[good] + 1, 2 * row[good] + 1, 0, EdgeKind.HOST_SYNC, provenance, confidence=percent)


def _by_ids(calls: Calls, syncs: Array) -> tuple[list[Edges], Array]:
    """Return (edges of the calls whose stream or event a cuda_sync row or an argument names, which calls these are)."""
    rows = calls.job.await_rows
    at = np.minimum(rows.position, max(0, len(calls.row) - 1))
    is_sync_row = np.isin(at, syncs)
    if len(calls.row):
        is_sync_row &= calls.correlation[at] == rows.correlation
    event = is_sync_row & rows.awaits_event & (rows.record_lane >= 0)
    stream = is_sync_row & ~rows.awaits_event & (rows.lane >= 0)
    record = np.where(rows.record >= 0, rows.record, rows.position)
    by_event = rows.awaits_event & rows.names_records
    has_row = np.isin(syncs, at[is_sync_row & np.where(rows.awaits_event, by_event, rows.lane >= 0)])
    acts, row = calls.job.activities, calls.row[syncs]
    named = calls.job.stream_lanes(acts.rank[row], acts.arg("device")[row], acts.arg("stream")[row])  # MTIA writes them
    lane = np.where(has_row, -1, named)
    has_argument = lane >= 0
    of_event = calls.enqueued.last_before(rows.record_lane[event], record[event])
    of_stream = calls.enqueued.last_before(rows.lane[stream], at[stream])
    by_argument = calls.enqueued.last_before(lane[has_argument], syncs[has_argument])
    edges = [
        _linked(calls, source, call, Provenance.OBSERVED, 100, LIMITS.two_clocks_ns)
        for source, call in ((of_event, at[event]), (of_stream, at[stream]), (by_argument, syncs[has_argument]))
    ]
    # a row without a record means an event recorded before the trace began: the call waits for nothing in the trace
    return edges, has_argument | has_row


def _polled(job: RecordedJob) -> Edges:
    """Return the edges into loops that ask for work again and again, and into pauses that end with it.

    All questions of a loop but the first move with the end of the work: they have the recorded lag, which is negative
    for all but the last. Where the work was over, the lag is 0.
    """
    waits, source = job.polled, 2 * job.polled.source + 1
    lag = np.where(waits.over, 0, job.moment(waits.vertex) - job.moment(source))
    return Edges.of(source, waits.vertex, lag, EdgeKind.HOST_SYNC, Provenance.INFERRED, confidence=waits.sure)


def _inferred(calls: Calls, syncs: Array, of_event: Array, refused: list[Array]) -> Iterator[Edges]:
    """Yield the edges of calls that wait for a stream or an event that no row names; the rest goes to `refused`."""
    acts, clock = calls.job.activities, {rank: returns(calls, rank) for rank in calls.lanes} if len(syncs) else {}
    sites: list[tuple[Site, bool]] = []
    for rows in grouped(calls.site[syncs]):
        rank = int(calls.rank[syncs[rows[0]]])
        if rank in calls.lanes:
            position, own = syncs[rows], clock[rank]
            row = calls.row[position]
            site = Site(position, acts.end[row], acts.start[row] + LIMITS.jitter_ns, own.window, own.tolerance)
            sites.append((site, bool(of_event[rows[0]])))
        else:
            refused.append(syncs[rows])
    answers = [best(calls, site, _guesses(calls, site, of_event=event)) for site, event in sites]
    clear = _clear(calls, [site for site, _ in sites], answers)
    for (site, event), answer in zip(sites, answers, strict=True):
        number = clear.get(int(calls.place[site.position[0]]))
        if number is not None and not (answer and answer.explained):
            guess = islice(_guesses(calls, site, of_event=event), number, number + 1)
            elsewhere = best(calls, site, ((lane, anchor, Plausible.YES) for lane, anchor, _ in guess))
            answer = elsewhere or answer
        if answer is None:
            refused.append(site.position)
            continue
        confidence = np.full(len(site.position), answer.confidence)
        if not event:
            confidence[_own_copy(calls, site.position, answer.source)] = Confidence.SURE
        yield _linked(calls, answer.source, site.position, Provenance.INFERRED, confidence, site.tolerance)


def _own_copy(calls: Calls, position: Array, source: Array) -> Array:
    """Return which calls wait for a copy that the same operator launched just before.

    An operator that copies and then waits for a stream wants the copy: that holds even if no wait of the site blocked.
    """
    acts, launch = calls.job.activities, calls.before[position]
    copies = (source >= 0) & (launch >= 0) & (acts.kind[np.maximum(source, 0)] == ActivityKind.MEMORY)
    by_launch = acts.cause[np.maximum(source, 0)] == calls.row[np.maximum(launch, 0)]
    owner = calls.owner[position]
    return copies & by_launch & calls.in_operator[position] & (owner == calls.owner[np.maximum(launch, 0)])


def _guesses(calls: Calls, site: Site, *, of_event: bool) -> Iterator[Hypothesis]:
    return _of_event(calls, site.position) if of_event else _of_stream(calls, site.position)


def _clear(calls: Calls, sites: list[Site], answers: list[Answer | None]) -> dict[int, int]:
    """Return for each place of the program which hypothesis explains most waits there, where some site is sure of one.

    The same program runs on other threads and ranks; where it never had to wait, these know what it waits for.
    """
    explained: dict[int, Counter[int]] = {}
    for site, answer in zip(sites, answers, strict=True):
        if answer is not None and answer.explained and answer.confidence == Confidence.SURE:
            place = explained.setdefault(int(calls.place[site.position[0]]), Counter())
            place[answer.number] += answer.explained
    return {place: numbers.most_common(1)[0][0] for place, numbers in explained.items()}


def _of_stream(calls: Calls, position: Array) -> Iterator[Hypothesis]:
    """Yield the streams that the calls of a site may wait for: of what asked for it, of the latest launch, any."""
    asked = _asked(calls, position)
    yield calls.lane_at(asked), np.maximum(asked, 0) + 1, Plausible.YES
    yield calls.lane_at(calls.before[position]), position, Plausible.YES
    yield calls.lane_at(calls.before_on_rank[position]), position, Plausible.NO
    for lane in calls.lanes[int(calls.rank[position[0]])][: LIMITS.tried]:
        yield np.full(len(position), lane), position, Plausible.NO


def _asked(calls: Calls, position: Array) -> Array:
    """Return the last launch of the operator that asked for the communication on the host around each call, or -1."""
    job, acts = calls.job, calls.job.activities
    owner = calls.owner[position]
    inside = (owner >= 0) & (acts.kind[np.maximum(owner, 0)] == ActivityKind.HOST_COMMUNICATION)
    out = np.full(len(position), -1, np.int64)
    if not inside.any():
        return out
    operator = job.host_calls.call_of(owner[inside])
    known = operator >= 0
    operator = operator[known]
    launches = np.flatnonzero(calls.launched >= 0)
    launches = launches[np.lexsort((launches, calls.thread[launches]))]
    stride = np.int64(len(calls.row) + 1)
    begin, end = (calls.from_moment(acts.rank[operator], moment[operator]) for moment in (acts.start, acts.end))
    lane = acts.lane[operator].astype(np.int64) * stride
    at = np.searchsorted(calls.thread[launches] * stride + launches, lane + end) - 1
    last = launches[np.maximum(at, 0)] if len(launches) else np.full(len(at), -1)
    fits = (at >= 0) & (last >= begin) & (calls.thread[np.maximum(last, 0)] == acts.lane[operator])
    out[np.flatnonzero(inside)[known]] = np.where(fits, last, -1)
    return out


def _of_event(calls: Calls, position: Array) -> Iterator[Hypothesis]:
    """Yield the events that the calls of a site may wait for.

    First the k-th latest record on the calling thread; then, for each call site of records, the n-th record of a step
    for the step's n-th wait.
    """
    rank = int(calls.rank[position[0]])
    lanes = calls.lanes[rank]
    for back, (record, own) in enumerate(records_back(calls, position)):
        yield own, record, Plausible.NO if back else Plausible.YES
        for lane in lanes[: LIMITS.tried]:
            yield np.where(record >= 0, lane, -1), record, Plausible.NO
    records = np.sort(calls.records[calls.rank[calls.records] == rank])
    waits = Ordered.of(position, calls.step[position])
    for rows in sorted(grouped(calls.site[records]), key=len, reverse=True)[: LIMITS.tried]:
        match = waits.match(Ordered.of(records[rows], calls.step[records[rows]]))
        yield np.where(match >= 0, calls.lane_at(calls.before[np.maximum(match, 0)]), -1), match, Plausible.NO
    if not len(records):
        for lane in lanes[: LIMITS.tried]:
            yield np.full(len(position), lane), position, Plausible.NO
