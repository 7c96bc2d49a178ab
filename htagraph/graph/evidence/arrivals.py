"""The edges of collectives, sends and receives: from arrivals to JOINs, and from JOINs to ends."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, coded, inverse_of, looked_up
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.statistics import ordered_by
from htagraph.graph.activities import Edges, blocked_since, worked_until
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["meetings"]

_PAIR_OPERATION = "send_recv"
_CONFIDENCE = {
    "comms_id": Confidence.PROVEN, "pg+seq": Confidence.PROVEN, "pg+order": Confidence.SURE,
    "lane+order": Confidence.SEEN,
}  # fmt: skip
"""By the key that matched the members: ids prove a match, while order, in a named group or on a stream, is only tested
by time."""
_NEVER = np.iinfo(np.int64).max


def meetings(job: RecordedJob, kind: EdgeKind, *, pairs: bool) -> Edges:
    """Return the edges of all collectives: from arrivals to JOINs, from JOIN to JOIN, and from JOINs to ends.

    The lag from a JOIN to an end is the member's transfer time: from the JOIN, or from its own start if that is later,
    to its end, or to the first call inside it after that (a copy of what it received). A member whose arrival no JOIN
    waits for (a receiver of a broadcast) has an edge with the same lag from its own start to its end. A member that
    waits for its device before it communicates (gloo does, with tensors of a device) has one from the end of that wait.
    With `pairs`, they are those of sends and receives, else those of all other collectives.
    """
    none = np.empty(0, np.int32)
    if job.matches is None or not job.matches.count:
        return Edges.of(none, none, 0, kind, Provenance.INFERRED)
    matches = job.matches
    wanted = (np.array([op == _PAIR_OPERATION for op in matches.op], np.bool_) == pairs)[matches.collective]
    sure = np.array([_CONFIDENCE.get(key, Confidence.SEEN) for key in matches.key], np.int8)[matches.collective]
    waits, feeds = wanted & (matches.join >= 0), wanted & (matches.feeds >= 0)
    early, early_member, early_call, early_lag = _posted_early(job, np.flatnonzero(waits & pairs))
    waits[early] = False
    member, join = matches.activity[waits].astype(np.int64), matches.join[waits].astype(np.int64)
    awaited = np.maximum(job.moment(2 * join), job.moment(2 * member))
    released, blocked = (2 * member + 1, np.full(len(member), -1)) if pairs else _released(job, member, awaited)
    lag = np.maximum(0, job.moment(released) - awaited)
    if pairs:
        lag = _without_other_work(job, np.flatnonzero(waits), lag)
    own = matches.feeds[waits] < 0  # no JOIN waits for this arrival, but the member's own end does
    blocks = np.flatnonzero(blocked >= 0)
    behind = job.moment(released[blocks]) - np.maximum(awaited[blocks], job.moment(blocked[blocks]))
    arrives = 2 * matches.activity[feeds].astype(np.int64)
    chained = _chained(matches.join[waits], matches.collective[waits])
    joins = np.unique(join)
    at_join = np.zeros(len(joins), np.int8)
    at_join[np.searchsorted(joins, join)] = sure[waits]
    parts = (
        (arrives, 2 * matches.feeds[feeds].astype(np.int64), 0, -1, sure[feeds]),
        (2 * chained[0], 2 * chained[1], 0, -1, at_join[np.searchsorted(joins, chained[1])]),
        (2 * join, released, lag, member, sure[waits]),
        (2 * member[own], released[own], lag[own], member[own], sure[waits][own]),
        (blocked[blocks], released[blocks], np.maximum(0, behind), member[blocks], sure[waits][blocks]),
        (2 * early_call, 2 * early_member + 1, early_lag, early_member, sure[early]),
    )
    edges = []
    for source, target, cost, owner, confidence in parts:
        known = np.where(confidence == 100, Provenance.OBSERVED, Provenance.INFERRED)  # matched by ids or not
        edges.append(Edges.of(source, target, cost, kind, known, activity=owner, confidence=confidence))
    joins = np.union1d(joins, matches.feeds[feeds])  # an end that follows nothing would stay where it was recorded
    edges.append(Edges.of(2 * joins, 2 * joins + 1, 0, EdgeKind.BODY, Provenance.INFERRED, activity=joins))
    return Edges.concatenate(edges)


def _released(job: RecordedJob, member: Array, awaited: Array) -> tuple[Array, Array]:
    """Return the vertex at which the wait of each member ends, and the end of a wait for its device before it, or -1.

    A collective on a host thread may prepare buffers before it communicates, and copy what it received afterwards. The
    longest stretch in which it calls nothing, of those that end after the last arrival, is the wait and the transfer.
    It ends with the member, or with the start of a call inside it.
    """
    acts = job.activities
    released, blocked = 2 * member + 1, np.full(len(member), -1)
    if not (acts.kind[member] == ActivityKind.HOST_COMMUNICATION).any():
        return released, blocked
    row = inverse_of(member, len(acts) + 1)
    inside = np.flatnonzero((row[acts.parent] >= 0) & ~acts.on_device)
    inside = inside[acts.lane[inside] == acts.lane[acts.parent[inside]]]
    at = np.concatenate([row[acts.parent[inside]], np.arange(len(member))])
    vertex = np.concatenate([2 * inside, released])
    order = np.lexsort((job.moment(vertex), at))
    at, vertex = at[order], vertex[order]
    begin = np.concatenate([[0], vertex[:-1] + 1])  # the end of the call before, or the member's start
    first = np.concatenate([[True], at[1:] != at[:-1]])
    begin[first] = 2 * member[at[first]]
    length = job.moment(vertex) - job.moment(begin)
    length[job.moment(vertex) < awaited[at]] = -1
    longest = np.lexsort((length, at))  # the last of each member counts
    released[at[longest]], blocked[at[longest]] = vertex[longest], begin[longest]
    return released, np.where(acts.kind[np.maximum(blocked, 0) >> 1] == ActivityKind.SYNC, blocked, -1)


def _posted_early(job: RecordedJob, rows: Array) -> tuple[Array, Array, Array, Array]:
    """Return the sends and receives on hosts that ended before the record of their partner began, as four columns.

    They are: the row of the matches, the member, the operator from within which its partner was posted, and the lag
    from the operator's start to the member's end, ns, which is at most what such transfers usually take.

    A backend hands a message over first and then begins its record of that. If the thread is put aside in between, the
    other side ends before the record begins; then only the operator's start came before that end.
    """
    matches, acts, none = job.matches, job.activities, np.zeros(0, np.int64)
    if matches is None or not (acts.kind[matches.activity[rows]] == ActivityKind.HOST_COMMUNICATION).any():
        return none, none, none, none
    member = matches.activity[rows].astype(np.int64)
    first = np.searchsorted(matches.collective, matches.collective[rows])
    last = np.minimum(first + 1, len(matches.activity) - 1)
    other = matches.activity[np.where(matches.activity[first] == member, last, first)].astype(np.int64)
    end, start = job.moment(2 * member + 1), np.maximum(job.moment(2 * member), job.moment(2 * other))
    call = job.host_calls.call_of(other)
    begun = np.where(call >= 0, job.moment(2 * np.maximum(call, 0)), _NEVER)
    early = (start > end) & (begun <= end) & (other != member)
    if not early.any():
        return none, none, none, none
    alike = coded(acts.rank[member], matches.bytes[rows])
    usual = looked_up(*ordered_by(alike, np.where(early, _NEVER, end - start), lambda count: count // 2), alike)
    observed = end - begun
    return rows[early], member[early], call[early], np.minimum(observed, usual)[early]


def _without_other_work(job: RecordedJob, rows: Array, lag: Array) -> Array:
    """Return transfer times of sends and receives without the time in which their thread did other work.

    An asynchronous one lasts until its caller waits for it, however early the data came. Only where the thread waited
    in it does its end show when the transfer was over; if its partner did not wait, that holds for both sides, however
    early the partner ended (a small message is sent once it is buffered). Of the others it is known that they were over
    by the first end of the two; they take as long as is usual where transfers of their size were waited for: of the
    same two ranks, else of any. Where none was, any time up to the shortest of their size may be true: they take half
    of it, and `htagraph.whatif.readings` reads them as shorter and as longer.
    """
    matches, acts = job.matches, job.activities
    if matches is None or not len(rows):
        return lag
    member = matches.activity[rows].astype(np.int64)
    on_host = acts.kind[member] == ActivityKind.HOST_COMMUNICATION
    if not on_host.any():
        return lag
    collective, size = matches.collective[rows], matches.bytes[rows]
    busy = on_host & (worked_until(acts, member) > acts.start[member])
    waited = acts.end[member] - blocked_since(acts, member)
    shown = on_host & (~busy | (waited >= LIMITS.small * lag))
    of_pair = np.full(matches.count, _NEVER)  # over at the first end that was waited for, else at the first end
    np.minimum.at(of_pair, collective[shown], lag[shown])
    measured = (of_pair < _NEVER)[collective]
    np.minimum.at(of_pair, collective[on_host & ~measured], lag[on_host & ~measured])
    lasts = of_pair[collective]
    _, group = np.unique(np.array(matches.group, dtype=object)[collective].astype(str), return_inverse=True)
    group = group.ravel()
    alike = np.where(size >= 0, -1, group)  # sizes that are unknown are compared within a pair of ranks only
    of_size = coded(alike, size)
    usual = _medians(coded(group, size), lasts, on_host & measured)
    usual = np.where(usual < _NEVER, usual, _medians(of_size, lasts, on_host & measured))
    least = np.full(int(of_size.max()) + 1, _NEVER)
    np.minimum.at(least, of_size[on_host], lasts[on_host])
    usual = np.where(usual < _NEVER, usual, least[of_size] // 2)
    lasts = np.where(measured, lasts, np.minimum(lasts, usual))
    return np.where(busy & ~shown, np.minimum(lag, lasts), lag)


def _medians(number: Array, lag: Array, counts: Array) -> Array:
    """Return for each row the median of the lags of its number that count; `_NEVER` where none does."""
    known, median = ordered_by(number[counts], lag[counts], lambda count: (count - 1) // 2)
    return looked_up(known, median, number, _NEVER)


def _chained(join: Array, collective: Array) -> tuple[Array, Array]:
    """Return (JOINs that have a next JOIN in their collective, that next JOIN); JOINs are numbered in order of time."""
    joins, first = np.unique(join.astype(np.int64), return_index=True)
    owner = collective[first]
    same = owner[1:] == owner[:-1]
    return joins[:-1][same], joins[1:][same]
