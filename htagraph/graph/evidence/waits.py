"""The work that a wait is for: by the ids of cuda_sync rows, else by hypotheses per call site, tested against times.

A hypothesis names, for each wait of a site, a position in the order of calls (an *anchor*: a record, a launch, the wait
itself) and a stream; the wait is for the last work enqueued on the stream before the anchor. A wait that ended before
that work refutes the hypothesis. A wait that ended right after that work, and that nothing else explains, supports it.
All inferred waits for device work go this way: a site, its candidates (which differ), `support`, and a confidence.
Where nothing says what was asked for, anything on another lane may have released a wait: `accept` says how surely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, joined, looked_up
from htagraph.core.errors import Issue
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import names_like
from htagraph.graph.accept import is_refuted, likely, of_recorded, ratio, rung
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence
from htagraph.trace.columns import Events

__all__ = [
    "Answer", "AwaitRows", "Ordered", "Plausible", "Returns", "Site", "await_rows", "best", "records_back",
    "returns", "returns_by_rank", "start_window", "unresolved_waits",
]  # fmt: skip

_NO_STREAM = 4_294_967_295
"""How Kineto of 2023 wrote "no stream": -1 as 32 bits without a sign."""


@dataclass(frozen=True, eq=False)
class Site:
    """The waits of one call site."""

    position: Ints
    """The positions of the waiting calls."""
    over: Ints
    """When each wait ended, ns; the work that it waited for ended before."""
    free: Ints
    """When each wait would have ended if it had waited for nothing, ns."""
    window: int
    """A wait ends at most this long after the work that it waited for, ns."""
    tolerance: int = LIMITS.tick_ns
    """By the errors of clocks, a wait may seem to end this long before that work, ns."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The hypothesis that fits a site best."""

    lane: Ints
    anchor: Ints
    source: Ints
    """The work that each wait waited for, -1 for none."""
    explained: int
    """How many waits of the sample ended right after that work, and would have ended earlier without it."""
    unexplained: int
    """How many waits of the sample took visibly long without being explained."""
    number: int
    """The number of the hypothesis, in the order in which they were tried."""
    confidence: int
    """How surely the waits are for that work, percent."""


class Plausible(IntEnum):
    """Whether a hypothesis is plausible in itself, so that it needs less evidence."""

    NO = 0  # accepted only if the times make it likelier than not, rare as it is
    YES = 1  # accepted if it is not refuted and the times make no other hypothesis likelier


Hypothesis: TypeAlias = tuple[Array, Array, Plausible]
"""(stream's lane for each wait, anchor of each wait, how plausible)."""


def best(calls: Calls, site: Site, hypotheses: Iterator[Hypothesis]) -> Answer | None:
    """Return the hypothesis that is likeliest by the times and not refuted (the first on ties), or None."""
    count = len(site.position)
    sample = np.linspace(0, count - 1, min(count, LIMITS.tested)).astype(np.int64)  # all if they are few
    over = site.over[sample]
    free = site.free[sample]
    visible = int(np.count_nonzero(over - free > LIMITS.tick_ns))
    ends = calls.job.activities.end
    chosen: tuple[float, int, int, Array, Array] | None = None
    for number, (lane, anchor, plausible) in enumerate(hypotheses):
        source = calls.enqueued.last_before(lane[sample], anchor[sample])
        has_work = source >= 0
        if not has_work.any():
            continue
        end = np.where(has_work, ends[np.maximum(source, 0)], np.iinfo(np.int64).min)
        odds, explained = of_recorded(over, free, end, site.window, site.tolerance)
        if is_refuted(end <= over + site.tolerance):
            continue
        score = likely(ratio(odds)[0], 1 if plausible else number + 1)  # each later one is less natural
        if (plausible or score > LIMITS.most) and (chosen is None or score > chosen[0]):
            chosen = score, number, int(np.count_nonzero(explained)), lane, anchor
        if chosen is not None and chosen[2] >= visible:
            break  # none can explain more
    if chosen is None:
        return None
    score, number, count, lane, anchor = chosen
    source = calls.enqueued.last_before(lane, anchor)
    sure = max(rung(100 * score, Confidence.SURE), Confidence.POSSIBLE)
    return Answer(lane, anchor, source, count, visible - count, number, sure)


def records_back(calls: Calls, position: Array, thread: Array | None = None) -> Iterator[tuple[Array, Array]]:
    """Yield for k = 1, 2… the k-th latest record on the thread before each call, and the lane of the launch before it.

    Both are -1 if there is none. There are as many pairs as records before any of the calls, up to a limit. `thread` is
    by default that of the call at each position.
    """
    records, key, lane = calls.record_order
    stride = len(calls.row) + 1
    first = (calls.thread[position] if thread is None else thread) * stride
    latest = np.searchsorted(key, first + position)
    begin = np.searchsorted(key, first)
    most = min(LIMITS.in_a_row, int((latest - begin).max(initial=0)))
    for back in range(1, most + 1):
        index = np.maximum(latest - back, 0)
        exists = latest - back >= begin
        yield np.where(exists, records[index], -1), np.where(exists, lane[index], -1)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Calls in the order of their positions, counted within each epoch (step)."""

    position: Ints
    """Their positions, ascending."""
    order: Ints
    """The calls by epoch, and within one by position."""
    epochs: Ints
    """The epochs that have any, ascending."""
    first: Ints
    """Where each epoch begins in `order`, and where the last one ends."""

    @staticmethod
    def of(position: Array, epoch: Array) -> Ordered:
        """Return calls by epoch; positions are ascending."""
        order = np.arange(len(epoch)) if (epoch[1:] >= epoch[:-1]).all() else np.argsort(epoch, kind="stable")
        by_epoch = epoch[order]
        first = np.concatenate(([0], np.flatnonzero(by_epoch[1:] != by_epoch[:-1]) + 1, [len(order)]))
        return Ordered(position, order, by_epoch[first[:-1]] if len(order) else by_epoch, first[: len(order) + 1])

    @cached_property
    def count(self) -> Ints:
        """How many calls each epoch has."""
        return np.diff(self.first)

    @cached_property
    def _place(self) -> tuple[Array, Array]:
        """Return for each call (the number of its epoch in `epochs`, how many calls of the epoch precede it)."""
        number = np.empty(len(self.order), np.int64)
        nth = np.empty(len(self.order), np.int64)
        number[self.order] = np.repeat(np.arange(len(self.epochs)), self.count)
        nth[self.order] = np.arange(len(self.order)) - np.repeat(self.first[:-1], self.count)
        return number, nth

    def _beside(self, others: Ordered) -> tuple[Array, Array]:
        """Return for each epoch (where it begins in the order of some other calls, how many calls it has)."""
        if np.array_equal(self.epochs, others.epochs):
            return others.first[:-1], others.count
        first, count = (looked_up(others.epochs, each, self.epochs, 0) for each in (others.first[:-1], others.count))
        return first, count

    def as_many(self, others: Ordered) -> bool:
        """Return whether nearly all epochs of these calls have as many of some other calls."""
        same = self.count == self._beside(others)[1]
        return bool(len(same) and np.count_nonzero(same) / len(same) >= 1 - LIMITS.damaged)

    def match(self, others: Ordered) -> Ints:
        """Return for the m-th call of each epoch the position of the m-th of some other calls in it, if before it.

        -1 stands for none.
        """
        begin, count = self._beside(others)
        if np.array_equal(self.count, count) and len(self.order) == len(others.order):
            match = np.empty(len(self.order), np.int64)
            match[self.order] = others.position[others.order]
            return np.where(match < self.position, match, -1)
        number, nth = self._place
        has = nth < count[number]
        if not has.any():
            return np.full(len(nth), -1, np.int64)
        match = others.position[others.order[np.where(has, begin[number] + nth, 0)]]
        return np.where(has & (match < self.position), match, -1)


class Returns(NamedTuple):
    """How soon blocking calls of a rank return after the work that they wait for, as recorded.

    Host and device have a clock each, and the two may disagree: a call may seem to return before the work ended.
    """

    tolerance: int = LIMITS.tick_ns
    """A call may seem to return this long before the work ended, ns."""
    window: int = LIMITS.usual_return_ns
    """A call returns at most this long after the work ended, ns."""
    soonest: int = -LIMITS.tick_ns
    """The soonest usual return after the end of the work, ns; far above 0 if the device's clock is late."""


def returns(calls: Calls, rank: int) -> Returns:
    """Return how soon blocking calls of a rank return: of its stream syncs and its copies to pageable memory."""
    known = calls.job.returns
    if rank not in known:
        known[rank] = _measured(calls, rank)
    return known[rank]


def returns_by_rank(calls: Calls, rank: Array) -> tuple[Array, Array, Array]:
    """Return (tolerance, window, soonest) of `Returns`, ns, for the rank of each of some calls."""
    ranks, place = np.unique(rank, return_inverse=True)
    known = [returns(calls, each) if each in calls.lanes else Returns() for each in ranks.tolist()]
    columns = np.array([(each.tolerance, each.window, each.soonest) for each in known], np.int64).reshape(-1, 3)
    tolerance, window, soonest = columns[place.ravel()].T
    return tolerance, window, soonest


def _measured(calls: Calls, rank: int) -> Returns:
    job, acts = calls.job, calls.job.activities
    syncs = calls.of_kind_on(rank, ActivityKind.SYNC)
    name = acts.name[calls.row[syncs]]
    of_event = names_like(job.naming.event_sync, job.names, name)
    streams = syncs[~of_event & ~names_like(job.naming.device_sync, job.names, name)]
    own = acts.of_rank(rank)
    copies = own.start + np.flatnonzero((acts.kind[own] == ActivityKind.MEMORY) & (acts.cause[own] >= 0))
    for pattern in (job.naming.pageable, job.naming.to_host):
        copies = copies[names_like(pattern, job.names, acts.name[copies])]
    source = calls.enqueued.last_before(calls.lane_at(calls.before[streams]), streams)
    call = np.concatenate([calls.row[streams[source >= 0]], acts.cause[copies]])
    source = np.concatenate([source[source >= 0], copies])
    # a sync right after a blocking copy finds nothing pending, and its return is no measure: leave it out
    waited = acts.end[source] > acts.start[call]
    late = (acts.end[call] - acts.end[source])[waited]
    late = late[np.abs(late) <= LIMITS.long_call_ns]
    soonest = -LIMITS.tick_ns
    tolerance = LIMITS.tick_ns
    if len(late) >= LIMITS.returns:
        soonest = int(np.percentile(late, 5)) - LIMITS.tick_ns
        tolerance = int(np.clip(-soonest, LIMITS.tick_ns, LIMITS.two_clocks_ns))
    events = syncs[of_event]
    for record, lane in records_back(calls, events):
        source = calls.enqueued.last_before(lane, record)
        after = (acts.end[calls.row[events]] - acts.end[np.maximum(source, 0)])[source >= 0]
        late = np.concatenate([late, after[(after >= 0) & (after <= LIMITS.long_call_ns)]])
        break
    window = LIMITS.usual_return_ns
    if len(late) >= LIMITS.returns:
        window = int(np.clip(1.5 * np.median(late), LIMITS.usual_return_ns, LIMITS.long_call_ns))
    return Returns(tolerance, window, max(soonest, -tolerance))


def start_window(calls: Calls, rank: int) -> int:
    """Return how soon the device of a rank starts waiting work after work on another stream has ended, ns.

    That is seen where collectives wait for the computation before them, which they always do. The window has a
    least length, also where nothing is seen; work that starts soon after its launch need not have waited.
    """
    acts, main = calls.job.activities, calls.lanes[rank][0]
    of_rank = calls.of_rank(rank)
    position = of_rank.start + np.flatnonzero(calls.communicates[of_rank] & (calls.launched[of_rank] != main))
    lane = calls.launched[position]
    before, own = (calls.enqueued.last_before(each, position) for each in (np.full(len(position), main), lane))
    start = acts.start[calls.enqueued.first_from(lane, position)]
    end = np.where(before >= 0, acts.end[before], 0)
    ready = np.maximum(
        acts.start[calls.row[position]] + LIMITS.own_call_ns + LIMITS.launch_ns, np.where(own >= 0, acts.end[own], 0)
    )
    after = (start - end)[(end > ready) & (start >= end) & (start <= end + 4 * LIMITS.window_ns)]
    usual = float(np.median(after)) if len(after) else 0.0
    return int(np.clip(2 * usual, LIMITS.window_ns, 4 * LIMITS.window_ns))


def unresolved_waits(job: RecordedJob, counts: Mapping[int, int], what: str) -> tuple[Issue, ...]:
    """Return an issue for each rank some of whose waits have no edge; `what` names these waits, and why."""
    return tuple(
        Issue(str(job.traces[rank].path), "waits_unresolved", f"{what}; left out", count, rank)
        for rank, count in sorted(counts.items())
        if count
    )


class AwaitRows(NamedTuple):
    """The cuda_sync rows of a job, which name by ids who waited for which work."""

    rank: Ints
    correlation: Ints
    """The correlation id of the waiting call."""
    position: Ints
    """The position of the waiting call, or where it would be if it is not in the file."""
    lane: Ints
    """The stream that waits or is waited for; -1 for none or all."""
    record_lane: Ints
    """The stream where the awaited event was recorded; -1 if unknown."""
    record: Ints
    """Position of the call that recorded the event; -1 if unknown."""
    awaits_event: Mask
    """Whether the call waited for an event, not for a stream or a device."""
    names_records: Mask
    """Whether rows of the rank's file name the records of events, where these are in the file."""


def await_rows(calls: Calls) -> AwaitRows:
    """Return the cuda_sync rows of all ranks."""
    parts = []
    for rank, trace in sorted(calls.job.traces.items()):
        which = trace.in_categories("cuda_sync")
        if which.any():
            columns = _await_rows(calls, rank, trace.events.take(which), trace.names)
            parts.append((*columns, np.full(len(columns[0]), trace.facts.names_records)))
    of_rank, correlation, position, lane, record_lane, record, event, named = joined(parts, len(AwaitRows._fields))
    masks = event.astype(np.bool_), named.astype(np.bool_)
    return AwaitRows(of_rank, correlation, position, lane, record_lane, record, *masks)


def _await_rows(calls: Calls, rank: int, table: Events, names: tuple[str, ...]) -> tuple[Array, ...]:
    """Return the columns of one rank."""
    own, device = np.full(len(table), rank, np.int64), np.maximum(table.arg("device"), 0)
    lanes = [
        calls.job.stream_lanes(own, device, np.where(stream == _NO_STREAM, -1, stream))
        for stream in (table.arg("stream"), table.arg("wait_on_stream"))
    ]
    correlation, record = table.arg("correlation"), table.arg("wait_on_record")
    record_at = np.where(record > 0, calls.by_correlation(rank, np.maximum(record, 0)), -1)
    awaits_event = names_like(calls.job.naming.event_sync, names, table.name)
    return own, correlation, calls.by_correlation(rank, correlation), *lanes, record_at, awaits_event
