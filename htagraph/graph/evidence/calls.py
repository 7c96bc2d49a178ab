"""Calls that launch, record events and wait, in order, the device work that each of them enqueued, and call sites.

The rules for waits (EVENT_WAIT, HOST_SYNC, QUEUE_FULL) ask for "the last work enqueued on a stream before a call". A
call site is a place in the program: calls of one thread with the same names around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, inverse_of, joined, marked
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.graph.activities import Activities
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = [
    "Calls",
    "Enqueued",
    "entries_of",
    "grouped",
    "last_ends",
    "launched_by_operators",
    "mixed",
    "owners",
    "work_before",
]

_KINDS = (ActivityKind.LAUNCH, ActivityKind.SYNC, ActivityKind.RECORD, ActivityKind.WAIT)


@dataclass(frozen=True, eq=False)
class Enqueued:
    """Device work by lane, and within a lane in the order in which it was enqueued."""

    work: Ints
    """Rows of activities."""
    lane: Ints
    latest: Ints
    """For each entry: the work of the lane up to it that ends last. Branches of a CUDA graph run in parallel, so that
    need not be the entry itself."""
    ends: Ints
    """For each entry: when `latest` ended, ns."""
    key: Ints
    """For each entry: `stride` times its lane, plus one more than the position of its call; ascending."""
    stride: int
    """More than any position."""

    def _at(self, lane: Array, position: Array) -> Array:
        return np.searchsorted(self.key, lane * self.stride + position + 1)

    def last_before(self, lane: Array, position: Array, back: int = 0) -> Array:
        """For each (lane, call), return the earlier work there, but the `back` latest pieces, that ends last, or -1."""
        if not len(self.work):
            return np.full(len(lane), -1, np.int64)
        before = self._at(lane, position) - 1 - back
        at = np.maximum(before, 0)
        exists = (before >= 0) & (self.lane[at] == lane) & (lane >= 0)
        return np.where(exists, self.latest[at], -1)

    def back_to(self, lane: Array, position: Array, moment: Array) -> Array:
        """For each (lane, call, moment in ns), return the least `back` whose work had ended; below 0: later work."""
        out = np.full(len(lane), -1, np.int64)
        for rows in grouped(lane):
            own = slice(*np.searchsorted(self.lane, (lane[rows[0]], lane[rows[0]] + 1)))
            ended = own.start + np.searchsorted(self.ends[own], moment[rows], side="right")
            out[rows] = self._at(lane[rows], position[rows]) - ended
        return out

    def first_from(self, lane: Array, position: Array) -> Array:
        """For each (lane, call), return the first work enqueued there by this call or a later one, or -1."""
        if not len(self.work):
            return np.full(len(lane), -1, np.int64)
        at = np.minimum(self._at(lane, position), len(self.work) - 1)
        exists = (self.lane[at] == lane) & (self.key[at] >= lane * self.stride + position + 1) & (lane >= 0)
        return np.where(exists, self.work[at], -1)


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of all ranks, by rank and then in the order in which they were made; a position is an index here."""

    job: RecordedJob
    row: Ints
    """Activity of each call."""
    launched: Ints
    """The lane on which the work that each call launched ran, or began; -1 if it launched none."""

    @staticmethod
    def of(job: RecordedJob) -> Calls:
        """Return the calls of a job."""
        acts = job.activities
        row = np.flatnonzero(of_kinds(acts.kind, _KINDS))
        # times may be equal in files of whole µs; correlation ids count calls, so they give the order
        row = row[np.lexsort((acts.arg("correlation")[row], acts.start[row], acts.rank[row]))]
        lane_of = np.full(len(acts), -1, np.int64)
        work = _work(job)
        work = work[acts.cause[work] >= 0]
        stream = np.array([lane.stream for lane in job.lanes], np.int64)[acts.lane[work]]
        work = work[np.lexsort((stream, acts.start[work]))[::-1]]  # files have them in any order: the first to start
        lane_of[acts.cause[work]] = acts.lane[work]
        return Calls(job, row, np.where(acts.kind[row] == ActivityKind.LAUNCH, lane_of[row], -1))

    def of_kind(self, *kinds: ActivityKind) -> Array:
        """Return the positions of calls of some kinds."""
        return np.flatnonzero(of_kinds(self.kind, kinds))

    @cached_property
    def kind(self) -> npt.NDArray[np.int8]:
        """For each call: its ActivityKind."""
        return self.job.activities.kind[self.row]

    @cached_property
    def position(self) -> Ints:
        """For each activity: its position if it is a call, else -1."""
        return inverse_of(self.row, len(self.job.activities))

    @cached_property
    def thread(self) -> Ints:
        """For each call: the lane of its thread."""
        return self.job.activities.lane[self.row].astype(np.int64)

    @cached_property
    def rank(self) -> Ints:
        """For each call: its rank."""
        return self.job.activities.rank[self.row].astype(np.int64)

    @cached_property
    def step(self) -> npt.NDArray[np.int32]:
        """For each call: its step, -1 outside of steps."""
        return self.job.activities.step[self.row]

    @cached_property
    def _nesting(self) -> tuple[Array, Array]:
        return owners(self.job.activities, self.row)

    @property
    def owner(self) -> Ints:
        """For each call: the innermost operator or annotation around it, or -1."""
        return self._nesting[0]

    @cached_property
    def in_operator(self) -> Mask:
        """For each call: whether it is inside an operator, directly or in an annotation inside the operator."""
        acts, owner = self.job.activities, self.owner
        outer = np.where(owner >= 0, acts.parent[np.maximum(owner, 0)], -1)
        is_op = (owner >= 0) & (acts.kind[np.maximum(owner, 0)] == ActivityKind.OP)
        return is_op | ((outer >= 0) & (acts.kind[np.maximum(outer, 0)] == ActivityKind.OP))

    @cached_property
    def launches_next(self) -> Mask:
        """For each call: whether the operator around it still launches something, which the call then prepares."""
        acts = self.job.activities
        launch = self.row[np.maximum(self.after, 0)]
        inside = acts.start[launch] <= acts.end[np.maximum(self.owner, 0)]
        return self.in_operator & (self.after >= 0) & inside

    @cached_property
    def site(self) -> npt.NDArray[np.uint64]:
        """For each call: a hash of its place and its thread."""
        return mixed(self.place, self.thread)

    @cached_property
    def place(self) -> npt.NDArray[np.uint64]:
        """For each call: a hash of its place in the program (nesting, whether its operator launches before and after).

        Within one operator, a wait before the launch (the launch waits) differs from one after it (others wait).
        """
        launched = self.within(self.before, np.arange(len(self.row))) & self.in_operator
        return mixed(self._nesting[1], launched * 2 + self.launches_next)

    @cached_property
    def records(self) -> Ints:
        """The positions of the calls that record events, by thread and position."""
        records = self.of_kind(ActivityKind.RECORD)
        return records[np.argsort(self.thread[records], kind="stable")]

    @cached_property
    def record_order(self) -> tuple[Array, Array, Array]:
        """Return (`records`, their thread and position as one ascending number, the lane of the launch before each)."""
        records = self.records
        return records, self.thread[records] * (len(self.row) + 1) + records, self.lane_at(self.before[records])

    @cached_property
    def starts(self) -> Ints:
        """For each call: when it started, ns."""
        return self.job.activities.start[self.row]

    @cached_property
    def surroundings(self) -> npt.NDArray[np.uint64]:
        """For each call: a hash of the calls before and after it on its thread, and of the streams they launch on."""
        order = self._by_thread
        what = mixed(self.job.activities.name[self.row], self.launched + 1)[order]
        out = np.empty(len(order), np.uint64)
        out[order] = mixed(np.roll(what, 1), np.roll(what, -1), self.thread[order])
        return out

    @cached_property
    def closes(self) -> Mask:
        """For each call: whether it is the last one of its site in its operator; libraries may make several."""
        key = mixed(self.owner, self.site)
        out = ~self.in_operator
        order = np.argsort(key)
        begins = np.flatnonzero(np.append(True, key[order[1:]] != key[order[:-1]])[: len(key)])
        out[np.maximum.reduceat(order, begins) if len(begins) else begins] = True
        return out

    @cached_property
    def _by_thread(self) -> Ints:
        """The positions of the calls by thread, and on each thread in order."""
        return np.argsort(self.thread, kind="stable")

    @cached_property
    def previous(self) -> Ints:
        """For each call: the position of the previous call on its thread, or -1."""
        return _latest(self._by_thread, self.thread, np.ones(len(self.row), np.bool_))

    def within(self, inner: Array, outer: Array) -> Mask:
        """Return which calls `inner` were made inside the operator around the later call `outer`; False for -1."""
        acts = self.job.activities
        owner = self.owner[outer]
        known = (inner >= 0) & (outer >= 0) & (owner >= 0)
        return known & (acts.start[self.row[inner]] >= acts.start[np.maximum(owner, 0)])

    @cached_property
    def communicates(self) -> Mask:
        """For each call: whether it launched a collective."""
        acts = self.job.activities
        work = np.flatnonzero((acts.kind == ActivityKind.COMMUNICATION) & (acts.cause >= 0))
        at = self.position[acts.cause[work]]
        return marked(at[at >= 0], len(self.row))

    @cached_property
    def internal(self) -> Mask:
        """For each call: whether a communication library made it for its own streams.

        Those are the calls between the launch of a collective and the record of its end event.
        """
        last = np.full(len(self.row) + 1, -1, np.int64)  # for each launch, the last record after it in its operator
        records = self.of_kind(ActivityKind.RECORD)
        records = records[self.in_operator[records] & self.within(self.before[records], records)]
        np.maximum.at(last, self.before[records], records)
        inside = (self.before >= 0) & (self.owner >= 0) & (self.owner == self.owner[self.before])
        return inside & self.communicates[self.before] & (np.arange(len(self.row)) < last[self.before])

    def elsewhere(self, position: Array, lane: Array) -> Array:
        """For each call, return the lane of the thread's latest launch before it on a lane other than `lane`."""
        return self.lane_at(self.sender(position, lane))

    def sender(self, position: Array, lane: Array) -> Array:
        """For each call, return the thread's latest launch before it on a lane other than `lane`, or -1."""
        latest = self.before[position]
        there = self.lane_at(latest) == lane
        return np.where(there & (latest >= 0), self._before_run[np.maximum(latest, 0)], latest)

    def receiver(self, position: Array, lane: Array) -> Array:
        """For each call, return the thread's next launch after it on a lane other than `lane`, or -1."""
        following = self.after[position]
        there = self.lane_at(following) == lane
        return np.where(there & (following >= 0), self._after_run[np.maximum(following, 0)], following)

    @cached_property
    def _before_run(self) -> Array:
        """For each launch: the thread's latest launch before it on another stream, or -1."""
        return self._beside_run(np.flatnonzero(self.launched >= 0))

    @cached_property
    def _after_run(self) -> Array:
        """For each launch: the thread's next launch after it on another stream, or -1."""
        return self._beside_run(np.flatnonzero(self.launched >= 0)[::-1])

    def _beside_run(self, launches: Array) -> Array:
        """For each of some launches in an order: the last one of its thread before it on another stream, or -1."""
        launches = launches[np.argsort(self.thread[launches], kind="stable")]
        thread, lane = self.thread[launches], self.launched[launches]
        begins = np.append(True, (lane[1:] != lane[:-1]) | (thread[1:] != thread[:-1]))[: len(launches)]
        previous = np.maximum.accumulate(np.where(begins, np.arange(len(launches)), 0)) - 1
        same = (previous >= 0) & (thread[np.maximum(previous, 0)] == thread)
        out = np.full(len(self.row), -1, np.int64)
        out[launches] = np.where(same, launches[np.maximum(previous, 0)], -1)
        return out

    @cached_property
    def before(self) -> Ints:
        """For each call: the position of the thread's latest launch before it, or -1."""
        return _latest(self._by_thread, self.thread, self.launched >= 0)

    @cached_property
    def before_on_rank(self) -> Ints:
        """For each call: the position of the latest launch before it on any thread of its rank, or -1."""
        return _latest(np.arange(len(self.row)), self.rank, self.launched >= 0)

    @cached_property
    def after(self) -> Ints:
        """For each call: the position of the thread's next launch after it, or -1."""
        return _latest(self._by_thread[::-1], self.thread, self.launched >= 0)

    def lane_at(self, position: Array) -> Array:
        """Return the lane launched on at each position, -1 where the position is -1."""
        return np.where(position >= 0, self.launched[np.maximum(position, 0)], -1) if len(self.row) else position

    @cached_property
    def enqueued(self) -> Enqueued:
        """All device work in the order in which it was enqueued."""
        acts, work = self.job.activities, _work(self.job)
        work = work[np.lexsort((acts.start[work], acts.lane[work]))]
        cause = acts.cause[work]
        position = np.where(cause >= 0, self.position[np.maximum(cause, 0)], -1)
        position = _filled(position, acts.lane[work])
        lane = acts.lane[work].astype(np.int64)
        order = np.lexsort((position, lane))
        work, lane, position = work[order], lane[order], position[order]
        latest = work.copy()
        cuts = np.flatnonzero(np.diff(lane)) + 1
        for part in np.split(np.arange(len(work)), cuts):
            end = acts.end[work[part]]
            records = end == np.maximum.accumulate(end)
            latest[part] = work[part][np.maximum.accumulate(np.where(records, np.arange(len(part)), 0))]
        stride = len(self.row) + 2
        key = lane * stride + position + 1
        return Enqueued(work.astype(np.int64), lane, latest.astype(np.int64), acts.end[latest], key, stride)

    @cached_property
    def lanes(self) -> dict[int, Ints]:
        """The streams of each rank that have work, the one with the most computation first, else the first to start."""
        acts, work = self.job.activities, _work(self.job)
        computes = np.bincount(acts.lane[work], acts.kind[work] == ActivityKind.COMPUTATION, len(self.job.lanes))
        busy = np.flatnonzero(np.bincount(acts.lane[work], minlength=len(self.job.lanes)))
        first = np.full(len(self.job.lanes), np.iinfo(np.int64).max)
        np.minimum.at(first, acts.lane[work], acts.start[work])
        stream = np.array([lane.stream for lane in self.job.lanes], np.int64)
        busy = busy[np.lexsort((stream[busy], first[busy], -computes[busy]))]
        rank = np.array([self.job.lanes[lane].rank for lane in busy], np.int64)
        return {int(number): busy[rank == number] for number in np.unique(rank)}

    def of_rank(self, rank: int) -> slice:
        """Return the positions of a rank's calls as a slice."""
        first, last = np.searchsorted(self.rank, (rank, rank + 1))
        return slice(int(first), int(last))

    def from_moment(self, rank: Array, moment: Array) -> Array:
        """Return the position of the first call of each rank from a moment (ns) on."""
        out = np.empty(len(rank), np.int64)
        for each in np.unique(rank).tolist():
            of_rank, own = rank == each, self.of_rank(each)
            out[of_rank] = own.start + np.searchsorted(self.starts[own], moment[of_rank])
        return out

    def of_kind_on(self, rank: int, kind: ActivityKind) -> Array:
        """Return the positions of a rank's calls of one kind."""
        own = self.of_rank(rank)
        return own.start + np.flatnonzero(self.kind[own] == kind)

    def is_record(self, position: Array) -> Mask:
        """Return which positions are those of calls that record events; False for -1."""
        return (position >= 0) & (self.kind[position] == ActivityKind.RECORD)

    @cached_property
    def correlation(self) -> Ints:
        """For each call: its correlation id, -1 for none."""
        return self.job.activities.arg("correlation")[self.row]

    def by_correlation(self, rank: int, correlation: Array) -> Array:
        """Return the position of a rank's calls with these correlation ids, or where a missing call would be.

        Correlation ids count calls, so that even a call that is not in the file has a place in the order.
        """
        own = self.of_rank(rank)
        at = own.start + np.flatnonzero(self.correlation[own] > 0)
        known = self.correlation[at]
        order = np.argsort(known, kind="stable")
        end = int(at[-1]) + 1 if len(at) else 0
        return np.append(at[order], end)[np.searchsorted(known[order], correlation)]


def launched_by_operators(job: RecordedJob, work: Array) -> Mask:
    """Return which device work has an operator in place of a launch, on ranks without any recorded call.

    Args:
        job: the recorded job.
        work: device work with a cause.
    """
    acts = job.activities
    has_calls = np.isin(acts.rank[work], job.calls.rank)
    by_operator = acts.kind[acts.cause[work]] == ActivityKind.OP
    return by_operator & ~has_calls


def _work(job: RecordedJob) -> Array:
    acts = job.activities
    return np.flatnonzero(acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER))


def _latest(order: Array, group: Array, counts: Array) -> Ints:
    """For each row, return the latest row before it in an order that counts, of its own group, or -1."""
    last = np.append(-1, np.maximum.accumulate(np.where(counts[order], np.arange(len(order)), -1)))[:-1]
    at = order[np.maximum(last, 0)]
    out = np.full(len(order), -1, np.int64)
    out[order] = np.where((last >= 0) & (group[at] == group[order]), at, -1)
    return out


def _filled(position: Array, lane: Array) -> Array:
    """Return the positions, where work without a launch in the file gets that of the work before it on its lane."""
    at = np.arange(len(position))
    last = np.maximum.accumulate(np.where(position >= 0, at, -1)) if len(at) else at
    same = (last >= 0) & (lane[np.maximum(last, 0)] == lane)
    return np.where(same, position[np.maximum(last, 0)], -1)


_PLACES = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.HOST_COMMUNICATION)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: the multiplier of Fibonacci hashing (Knuth, volume 3, 6.4)."""


def mixed(*columns: Array) -> Array:
    """Return one number per row, equal where all columns are equal (and, with odds of 2^-64 a pair, only there)."""
    out = np.full(len(columns[0]), 7, np.uint64)
    for column in columns:
        out = (out ^ (column.astype(np.uint64) + np.uint64(1))) * _MULTIPLIER
        out ^= out >> np.uint64(29)
    return out


def grouped(key: Array) -> Iterator[Array]:
    """Yield the rows of each value of a key, ascending; values in no particular order.

    Example:
        >>> [rows.tolist() for rows in grouped(np.array([5, 3, 5]))]
        [[1], [0, 2]]
    """
    order = np.argsort(key, kind="stable")
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def owners(acts: Activities, row: Array) -> tuple[Array, Array]:
    """Return (innermost operator or annotation around each call or -1, a hash of the names of all that enclose it).

    Python frames do not count, because their names differ between instances of one place (modules, line numbers). Steps
    do not count either, nor do calls, which seem to enclose each other in files of whole µs.
    """
    place = of_kinds(acts.kind, _PLACES)
    at = acts.parent[row].astype(np.int64)
    owner = np.full(len(at), -1, np.int64)
    path = acts.name[row].astype(np.uint64)
    rows = np.flatnonzero(at >= 0)
    while len(rows):
        here = at[rows]
        counts = place[here]
        owner[rows] = np.where((owner[rows] < 0) & counts, here, owner[rows])
        path[rows] = np.where(counts, mixed(path[rows], acts.name[here]), path[rows])
        at[rows] = acts.parent[here]
        rows = rows[at[rows] >= 0]
    return owner, path


def work_before(calls: Calls, rank: Array, position: Array, thread: Array) -> tuple[Array, Array]:
    """Return pairs (last work on a stream before a call, index of the call), one per stream with work before the call.

    On very many streams, only those count on which work was enqueued since the thread's previous one of these calls:
    that one waited for the rest. So there are never more pairs than grow with the work. Positions are those of calls,
    or where a call that does not count would be; they ascend on each thread.
    """
    parts = []
    for own in grouped(rank):
        lanes = calls.lanes.get(int(rank[own[0]]), np.zeros(0, np.int64))
        if len(lanes) > 2 * LIMITS.tried:
            parts += [_new_work_before(calls, lanes, position, own[rows]) for rows in grouped(thread[own])]
            continue
        for lane in lanes.tolist():
            source = calls.enqueued.last_before(np.full(len(own), lane), position[own])
            parts.append((source[source >= 0], own[source >= 0]))
    source, number = joined(parts, 2)
    return source, number


def _new_work_before(calls: Calls, lanes: Array, position: Array, rows: Array) -> tuple[Array, Array]:
    """Return the pairs of `work_before` of one thread's calls with streams that have new work since the call before."""
    enqueued, own = calls.enqueued, entries_of(calls, lanes)
    lane, at = enqueued.lane[own], enqueued.key[own] - enqueued.lane[own] * enqueued.stride - 1
    first = np.searchsorted(position[rows], at, side="right")  # the first of the calls after it was enqueued
    last = np.append((lane[1:] != lane[:-1]) | (first[1:] != first[:-1]), True) & (first < len(rows))
    return enqueued.latest[own][last], rows[first[last]]


def last_ends(calls: Calls, rank: Array, position: Array) -> Ints:
    """Return when the last of all work ended that had been enqueued on a rank before each call, ns.

    It is the smallest integer where there was none.
    """
    enqueued, out = calls.enqueued, np.full(len(rank), np.iinfo(np.int64).min)
    for rows in grouped(rank):
        own = entries_of(calls, calls.lanes.get(int(rank[rows[0]]), np.zeros(0, np.int64)))
        at = enqueued.key[own] - enqueued.lane[own] * enqueued.stride - 1
        order = np.argsort(at, kind="stable")
        ends = np.maximum.accumulate(calls.job.activities.end[enqueued.work[own]][order])
        out[rows] = np.append(out[rows[0]], ends)[np.searchsorted(at[order], position[rows])]
    return out


def entries_of(calls: Calls, lanes: Array) -> slice:
    """Return which entries of `Calls.enqueued` are on the streams of a rank, as a slice."""
    return slice(*np.searchsorted(calls.enqueued.lane, (lanes.min(), lanes.max() + 1))) if len(lanes) else slice(0, 0)
