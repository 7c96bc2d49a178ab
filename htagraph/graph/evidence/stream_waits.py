"""Which stream waits for which work, for traces that have the event calls but not their streams and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, Provenance
from htagraph.graph.evidence.call_sites import grouped, mixed
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.wait_hypotheses import (
    Answer,
    Hypothesis,
    Ordered,
    Plausible,
    Site,
    best,
    records_back,
    start_window,
)
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["SharedByRank", "StreamWaits", "as_site", "stream_waits"]


@dataclass(frozen=True, eq=False)
class StreamWaits:
    """Waits of streams: what is enqueued on `lane` at or after `position` waits for an event of `record_lane`.

    The event is recorded by the call at position `record`, so the wait is for all that was enqueued on `record_lane`
    before it.
    """

    lane: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    record_lane: npt.NDArray[np.int64]
    record: npt.NDArray[np.int64]
    provenance: npt.NDArray[np.int64]
    confidence: npt.NDArray[np.int64]

    def take(self, keep: Array) -> StreamWaits:
        """Return the waits of a mask."""
        return StreamWaits(*(getattr(self, name)[keep] for name in StreamWaits.__dataclass_fields__))

    @staticmethod
    def inferred(lane: Array, position: Array, record_lane: Array, record: Array, confidence: int) -> StreamWaits:
        """Return waits that share a confidence."""
        count = len(lane)
        provenance = np.full(count, Provenance.INFERRED, np.int64)
        return StreamWaits(lane, position, record_lane, record, provenance, np.full(count, confidence, np.int64))

    @staticmethod
    def concatenate(parts: list[StreamWaits]) -> StreamWaits:
        """Return the waits of all parts."""
        names = StreamWaits.__dataclass_fields__
        none = np.zeros(0, np.int64)
        return StreamWaits(*(np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in names))


@dataclass(frozen=True, eq=False)
class SharedByRank:
    """What is known of a rank, for all its call sites."""

    calls: Calls
    main: int
    """The stream with the most computation."""
    streams: npt.NDArray[np.int64]
    quiet: npt.NDArray[np.int64]
    """Streams on which only collectives run."""
    places: list[tuple[Ordered, int]]
    """Places of the program where work on side streams ends: (anchors by the step of the work, stream)."""
    first: int
    """The first activity of the rank."""
    awaited: npt.NDArray[np.int64]
    """For each activity of the rank: when the work that it is known to wait for ended, ns. `learn` updates it."""
    records: npt.NDArray[np.int64]
    """The positions of calls that record events."""
    window: int
    """Waiting work starts this soon after the awaited work ended, ns."""

    @staticmethod
    def of(calls: Calls, rank: int) -> SharedByRank:
        """Return what is known of a rank before any of its waits is resolved."""
        streams = calls.lanes[rank]
        own = calls.of_rank(rank)
        other = np.unique(calls.launched[own][~calls.communicates[own]])
        quiet = streams[~np.isin(streams, other)]
        of_rank = calls.job.activities.of_rank(rank)
        awaited = np.full(of_rank.stop - of_rank.start, np.iinfo(np.int64).min)
        return SharedByRank(
            calls, int(streams[0]), streams, quiet, _places(calls, rank), of_rank.start, awaited,
            calls.of_kind_on(rank, ActivityKind.RECORD), start_window(calls, rank, LIMITS.window_ns, LIMITS.started_ns),
        )  # fmt: skip

    def learn(self, waits: StreamWaits) -> None:
        """Note what kernels and copies wait for, so that no other wait has to explain when they start."""
        target = self.calls.enqueued.first_from(waits.lane, waits.position)
        source = self.calls.enqueued.last_before(waits.record_lane, waits.record)
        known = (source >= 0) & (target >= 0)
        np.maximum.at(self.awaited, target[known] - self.first, self.calls.job.activities.end[source[known]])


def stream_waits(calls: Calls, rank: int, counts: Counter[str]) -> Iterator[StreamWaits]:
    """Yield the waits of a rank whose trace has no cuda_sync rows, and count those resolved and refused.

    The most certain call sites come first, because a start that they explain is no evidence for other sites.
    """
    waits = calls.of_kind_on(rank, ActivityKind.WAIT)
    counts["internal"] += int(calls.internal[waits].sum())
    waits = waits[~calls.internal[waits]]
    if not len(waits):
        return
    shared = SharedByRank.of(calls, rank)
    behind = _behind_collective(calls, waits)
    refused = []
    for rows, candidates in sorted(
        _candidates(shared, waits, mixed(calls.site[waits], behind)),
        key=lambda site: (behind[site[0][0]] == 0, not calls.launches_next[waits[site[0][0]]]),
    ):
        resolved = _resolved(shared, waits[rows], candidates, at_once=bool(behind[rows[0]]))
        if resolved is None:
            refused.append(waits[rows])
            continue
        counts["inferred"] += len(rows)
        shared.learn(resolved)
        yield resolved
    if not refused:
        return
    # in files of whole µs some calls seem to be in another operator: group them by their neighbouring calls instead
    left = np.concatenate(refused)
    for rows, candidates in _candidates(shared, waits, calls.surroundings[waits]):
        again = np.isin(waits[rows], left)
        some = again.any() and not again.all()
        resolved = _resolved(shared, waits[rows], candidates, at_once=False) if some else None
        if resolved is not None:
            counts["inferred"] += int(again.sum())
            yield resolved.take(np.isin(resolved.position, left))
            left = left[~np.isin(left, waits[rows])]
    behind = (calls.after[left] >= 0) | (calls.enqueued.first_from(np.full(len(left), shared.main), left) >= 0)
    counts["refused"] += int(behind.sum())
    counts["nothing behind"] += int((~behind).sum())


def _resolved(shared: SharedByRank, position: Array, candidates: list[Array], *, at_once: bool) -> StreamWaits | None:
    """Return which stream the waits of a site make wait, and for what; None if unknown.

    Args:
        shared: what is known of the rank.
        position: the positions of the waits.
        candidates: the streams that may be made to wait, the most natural first.
        at_once: whether each wait comes right after the launch of a collective.
    """
    latest = shared.calls.lane_at(shared.calls.before[position])
    chosen: tuple[Answer, Array, Array] | None = None
    current = _current(shared.calls, position, latest) if at_once else None
    if current is not None:
        chosen = _asked(shared, position, current, iter([(latest, position, Plausible.YES)]))
    # on ties the compute stream waits, whatever is launched next
    for lane in reversed(candidates) if at_once and chosen is None else ():
        if (latest != lane).all():
            chosen = _better(chosen, _asked(shared, position, lane, iter([(latest, position, Plausible.YES)])))
    if chosen is None:
        for lane in candidates:
            chosen = _better(chosen, _asked(shared, position, lane, _hypotheses(shared, position, lane)))
    return None if chosen is None else _accepted(*chosen)


def _current(calls: Calls, position: Array, collective: Array) -> Array | None:
    """Return the current stream at waits right after collectives, which is the stream that waits; None if unknown.

    It is the stream of the last launch before the collective in the operator or annotation around the wait: that launch
    computed what the collective sends.
    """
    sender = calls.sender(position, collective)
    known = calls.within(sender, position) & ~_just_recorded(calls, position)
    return calls.lane_at(sender) if known.all() else None


def _just_recorded(calls: Calls, position: Array) -> Array:
    """Return which waits come right after a record in the same operator: one stream waits for all of another so far."""
    previous = calls.previous[position]
    return calls.is_record(previous) & (calls.owner[previous] == calls.owner[position])


def _behind_record(calls: Calls, position: Array) -> Array:
    """Return which waits come right after a record in the same operator, with nothing but other waits between.

    In traces without records, any wait may.
    """
    acts = calls.job.activities
    if not len(calls.of_kind_on(int(calls.rank[position[0]]), ActivityKind.RECORD)):
        return np.ones(len(position), np.bool_)
    previous = calls.previous[position]
    for _ in range(LIMITS.in_a_row):
        is_wait = (previous >= 0) & (acts.kind[calls.row[previous]] == ActivityKind.WAIT)
        if not is_wait.any():
            break
        previous = np.where(is_wait, calls.previous[previous], previous)
    return calls.is_record(previous) & (calls.owner[previous] == calls.owner[position])


def _better(
    first: tuple[Answer, Array, Array] | None, second: tuple[Answer, Array, Array] | None
) -> tuple[Answer, Array, Array] | None:
    if first is None or second is None:
        return second if first is None else first
    return second if second[0].explained > LIMITS.clearer * first[0].explained else first


def _asked(
    shared: SharedByRank, position: Array, lane: Array, guesses: Iterator[Hypothesis]
) -> tuple[Answer, Array, Array] | None:
    """Return the best hypothesis if `lane` is made to wait, with lanes and positions of the waits that work follows."""
    target = shared.calls.enqueued.first_from(lane, position)
    keep = target >= 0
    if not keep.any():
        return None
    site = as_site(shared, position[keep], lane[keep], target[keep])
    answer = best(shared.calls, site, _restricted(guesses, keep))
    return None if answer is None else (answer, lane[keep], position[keep])


def _accepted(answer: Answer, lane: Array, position: Array) -> StreamWaits:
    sure = answer.explained >= max(3, 2 * answer.unexplained)
    confidence = Confidence.SURE if sure else Confidence.LIKELY if answer.explained else Confidence.POSSIBLE
    return StreamWaits.inferred(lane, position, answer.lane, answer.anchor, confidence)


def _candidates(shared: SharedByRank, waits: Array, place: Array) -> Iterator[tuple[Array, list[Array]]]:
    """Yield the waits of each site, as indices, with the streams that they may make wait.

    A site is a place and the stream of the next launch on the thread, which usually is the stream that waits. But that
    launch may come much later, for a collective with a wait of its own, while another thread launches sooner.
    """
    calls = shared.calls
    nearest = calls.lane_at(calls.after[waits])
    # no stream waits for what it recorded itself: one on which the operator launches later does
    recorder = np.where(_behind_record(calls, waits), calls.lane_at(calls.before[waits]), -1)
    receiver = calls.receiver(waits, recorder)
    forks = (nearest == recorder) & (receiver >= 0) & (calls.owner[receiver] == calls.owner[waits])
    nearest = np.where(forks & calls.in_operator[waits], calls.lane_at(receiver), nearest)
    for unknown in np.unique(place[nearest < 0]):
        same = place == unknown
        known = nearest[same & (nearest >= 0)]
        if len(known):
            nearest[same & (nearest < 0)] = np.bincount(known).argmax()
    nearest = np.where(nearest >= 0, nearest, shared.main)
    second = np.where(calls.launches_next[waits], nearest, shared.main)
    for rows in grouped(mixed(place, nearest, second)):
        same = bool((nearest[rows] == second[rows]).all())
        yield rows, [nearest[rows]] if same else [nearest[rows], second[rows]]


def _behind_collective(calls: Calls, waits: Array) -> Array:
    """Return the site of the collective that each wait comes right after, or 0 unless each of that site has a wait.

    Of the records after a collective's launch only the last one marks its end. Such waits must be kept apart: at the
    same site, they would hide waits for a collective launched long before (prefetched).
    """
    previous = calls.previous[waits]
    launch = np.where(calls.launched[previous] >= 0, previous, calls.before[previous])
    behind = calls.within(launch, previous) & calls.communicates[launch] & calls.closes[previous]
    sites, number, count = np.unique(calls.site[previous[behind]], return_inverse=True, return_counts=True)
    own = calls.of_rank(int(calls.rank[waits[0]]))
    same = own.start + np.flatnonzero(np.isin(calls.site[own], sites) & calls.closes[own])
    all_of = np.bincount(np.searchsorted(sites, calls.site[same]), minlength=len(sites))
    out = np.zeros(len(waits), np.uint64)
    out[behind] = np.where((count == all_of)[number.ravel()], sites[number.ravel()], np.uint64(0))
    return out


def as_site(shared: SharedByRank, position: Array, lane: Array, target: Array) -> Site:
    """Return waits as a site, given the first work (`target`) enqueued after each on the stream (`lane`) that waits."""
    calls, acts = shared.calls, shared.calls.job.activities
    before = calls.enqueued.last_before(lane, position)
    free = np.where(before >= 0, acts.end[np.maximum(before, 0)], np.iinfo(np.int64).min)
    launch = acts.cause[target]
    free = np.where(launch >= 0, np.maximum(free, acts.start[np.maximum(launch, 0)] + LIMITS.started_ns), free)
    return Site(position, acts.start[target], np.maximum(free, shared.awaited[target - shared.first]), shared.window)


def _restricted(hypotheses: Iterator[Hypothesis], keep: Array) -> Iterator[Hypothesis]:
    for lane, anchor, plausible in hypotheses:
        yield lane[keep], anchor[keep], plausible


def _places(calls: Calls, rank: int) -> list[tuple[Ordered, int]]:
    """Return the places where work on side streams ends, as (anchors, lane): its records, or, without any, launches.

    The anchor of a record is the record itself, the anchor of a launch is the position after it.
    """
    main = calls.lanes[rank][0]
    records = calls.of_kind_on(rank, ActivityKind.RECORD)
    before = calls.before[records]
    ends = calls.within(before, records) & _last_of(before, calls.owner[records])
    at, lanes = records[ends], calls.launched[before[ends]]
    behind = 0
    if not len(at):
        own = calls.of_rank(rank)
        at = own.start + np.flatnonzero(calls.launched[own] >= 0)
        lanes, behind = calls.launched[at], 1
    at, lanes = at[lanes != main], lanes[lanes != main]
    places = sorted(grouped(mixed(calls.site[at], lanes)), key=len, reverse=True)
    step = calls.step
    anchors = ((at[rows] + behind, int(lanes[rows[0]])) for rows in places[: LIMITS.tried])
    return [(Ordered.of(each, step[each - 1]), lane) for each, lane in anchors]


def _as_it_is(shared: SharedByRank, lane: Array, position: Array) -> Hypothesis:
    """Return the hypothesis that each wait is for all that was enqueued on a stream so far.

    It needs an event recorded after the stream's latest work; it is plausible if most waits of the site have one.
    """
    calls, records = shared.calls, shared.records
    source = calls.enqueued.last_before(lane, position)
    launch = calls.position[np.maximum(calls.job.activities.cause[np.maximum(source, 0)], 0)]
    could = np.append(-1, records)[np.searchsorted(records, position)] > launch
    if not len(records) or not (source >= 0).any():
        return lane, position, Plausible.YES
    plausible = Plausible.YES if could[source >= 0].mean() >= LIMITS.most else Plausible.NO
    return np.where(could, lane, -1), position, plausible


def _last_of(launch: Array, owner: Array) -> Array:
    """Return which records are the last one after a launch in an operator; a collective's operator makes several."""
    key = mixed(launch, owner)[::-1]
    out = np.zeros(len(key), bool)
    out[len(key) - 1 - np.unique(key, return_index=True)[1]] = True
    return out


def _hypotheses(shared: SharedByRank, position: Array, lane: Array) -> Iterator[Hypothesis]:
    """Yield what the waits of a site may wait for, the most natural hypothesis first."""
    calls, to = shared.calls, lane[0]
    other = calls.elsewhere(position, lane)
    if to != shared.main:  # a side stream, such as that of collectives, waits for the compute stream
        yield _as_it_is(shared, np.where(np.isin(other, shared.quiet), shared.main, other), position)
    if _just_recorded(calls, position).all():
        yield other, position, Plausible.YES
    loose: list[tuple[Ordered, int]] = []
    waits = Ordered.of(position, calls.step[position])
    for anchors, stream in shared.places:
        if stream == to or not len(position) / 2 <= len(anchors.position) <= 2 * len(position):
            continue
        match = waits.match(anchors) if waits.as_many(anchors) else None
        if match is not None and (match >= 0).all():
            yield np.full(len(position), stream), match, Plausible.YES
        else:
            loose.append((anchors, stream))
    yield _as_it_is(shared, other, position)
    streams = shared.streams[shared.streams != to]
    for stream in streams:
        yield np.full(len(position), stream), position, Plausible.NO
    for record, own in records_back(calls, position):
        yield np.where(own != to, own, -1), record, Plausible.NO
        for stream in streams:
            yield np.where(record >= 0, stream, -1), record, Plausible.NO
    for anchors, stream in loose:
        match = waits.match(anchors)
        yield np.where(match >= 0, stream, -1), match, Plausible.NO
