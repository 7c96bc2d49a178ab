"""Which stream waits for which work, where the trace does not name streams and events.

- `stream_waits`: for traces with the calls that record and await events, site by site.
- `boundary_waits`: for traces without such calls, where waits are assumed around collectives.
- `idle_ends`: idle streams that go on just as work of another stream ends, though no call says that they wait for
  it. The calls may be missing (from before the recording, or not recorded), or the work needs a part of the device
  that the other work occupied. In both cases it could not start before the other work ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, joined, marked
from htagraph.core.kinds import ActivityKind, Provenance
from htagraph.graph.accept import Ends, after_idle, of_each
from htagraph.graph.evidence.awaited_in_order import behind_the_next, in_order_of_launch, launches_of_collectives
from htagraph.graph.evidence.calls import Calls, grouped, mixed
from htagraph.graph.evidence.waits import Answer, Hypothesis, Ordered, Plausible, Site, best, records_back, start_window
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["SharedByRank", "StreamWaits", "as_site", "boundary_waits", "idle_ends", "stream_waits"]


class StreamWaits(NamedTuple):
    """Waits of streams: work that is enqueued on `lane` at or after `position` waits for an event of `record_lane`.

    The event is recorded by the call at position `record`, so the wait is for all that was enqueued on `record_lane`
    before it.
    """

    lane: Ints
    position: Ints
    record_lane: Ints
    record: Ints
    provenance: Ints
    confidence: Ints

    def take(self, keep: Array) -> StreamWaits:
        """Return the waits of a mask."""
        return StreamWaits(*(column[keep] for column in self))

    @staticmethod
    def inferred(lane: Array, position: Array, record_lane: Array, record: Array, sure: Array | int) -> StreamWaits:
        """Return inferred waits, of one confidence or each of its own, percent."""
        count = len(lane)
        provenance = np.full(count, Provenance.INFERRED, np.int64)
        confidence = np.broadcast_to(np.asarray(sure, np.int64), count)
        return StreamWaits(lane, position, record_lane, record, provenance, confidence)

    @staticmethod
    def concatenate(parts: list[StreamWaits]) -> StreamWaits:
        """Return the waits of all parts."""
        return StreamWaits(*joined(parts, len(StreamWaits._fields)))


@dataclass(frozen=True, eq=False)
class SharedByRank:
    """Facts about a rank, for all its call sites."""

    calls: Calls
    main: int
    """The stream with the most computation."""
    streams: Ints
    quiet: Ints
    """Streams on which only collectives run."""
    places: list[tuple[Ordered, int]]
    """Places of the program where work on side streams ends: (anchors by the step of the work, stream)."""
    first: int
    """The first activity of the rank."""
    awaited: Ints
    """For each activity of the rank: when the work that it is known to wait for ended, ns. `learn` updates it."""
    records: Ints
    """The positions of calls that record events."""
    window: int
    """Waiting work starts this soon after the awaited work ended, ns."""

    @staticmethod
    def of(calls: Calls, rank: int) -> SharedByRank:
        """Return the facts about a rank before any of its waits is resolved."""
        streams = calls.lanes[rank]
        of_calls = calls.of_rank(rank)
        computes = ~calls.communicates[of_calls]
        computing = np.unique(calls.launched[of_calls][computes])
        quiet = streams[~np.isin(streams, computing)]
        of_rank = calls.job.activities.of_rank(rank)
        awaited = np.full(of_rank.stop - of_rank.start, np.iinfo(np.int64).min)
        return SharedByRank(
            calls, int(streams[0]), streams, quiet, _places(calls, rank), of_rank.start, awaited,
            calls.of_kind_on(rank, ActivityKind.RECORD), start_window(calls, rank),
        )  # fmt: skip

    def learn(self, waits: StreamWaits) -> None:
        """Note the work that kernels and copies wait for, so that no other wait has to explain when they start."""
        target = self.calls.enqueued.first_from(waits.lane, waits.position)
        source = self.calls.enqueued.last_before(waits.record_lane, waits.record)
        has_work = (source >= 0) & (target >= 0)
        ended = self.calls.job.activities.end[source[has_work]]
        np.maximum.at(self.awaited, target[has_work] - self.first, ended)


def stream_waits(calls: Calls, rank: int, unresolved: Counter[int]) -> Iterator[StreamWaits]:
    """Yield the waits of a rank whose trace has no cuda_sync rows, and count by rank the waits that nothing resolves.

    The most certain call sites come first, because a start that they explain is no evidence for other sites.
    """
    waits = calls.of_kind_on(rank, ActivityKind.WAIT)
    waits = waits[~calls.internal[waits]]
    if not len(waits):
        return
    shared = SharedByRank.of(calls, rank)
    behind = _behind_collective(calls, waits)
    refused = []
    found: list[StreamWaits] = []
    for rows, candidates in sorted(
        _candidates(shared, waits, mixed(calls.site[waits], behind)),
        key=lambda site: (behind[site[0][0]] == 0, not calls.launches_next[waits[site[0][0]]]),
    ):
        resolved = _resolved(shared, waits[rows], candidates, at_once=bool(behind[rows[0]]))
        if resolved is None:
            refused.append(waits[rows])
            continue
        shared.learn(resolved)
        found.append(resolved)
    if not refused:
        yield from found
        return
    # in files of whole µs some calls seem to be in another operator: group them by their neighbouring calls instead
    left = np.concatenate(refused)
    for rows, candidates in _candidates(shared, waits, calls.surroundings[waits]):
        again = np.isin(waits[rows], left)
        some = again.any() and not again.all()
        resolved = _resolved(shared, waits[rows], candidates, at_once=False) if some else None
        if resolved is not None:
            found.append(resolved.take(np.isin(resolved.position, left)))
            left = left[~np.isin(left, waits[rows])]
    found.append(_in_order(shared, left, StreamWaits.concatenate(found)))
    left = left[~np.isin(left, found[-1].position)]
    yield from found
    behind = (calls.after[left] >= 0) | (calls.enqueued.first_from(np.full(len(left), shared.main), left) >= 0)
    unresolved[rank] += int(behind.sum())


def _in_order(shared: SharedByRank, waits: Array, known: StreamWaits) -> StreamWaits:
    """Return what waits of the computing stream are for by the order of launches alone, given all that are known."""
    calls = shared.calls
    launches = launches_of_collectives(calls, calls.job.lanes[shared.main].rank, shared.main)
    to_compute = calls.lane_at(calls.after[waits]) == shared.main
    position, launch = in_order_of_launch(calls, waits[to_compute], _not_awaited(shared, launches, known))
    return _of_compute(shared, position, launch)


def _not_awaited(shared: SharedByRank, launches: Array, known: StreamWaits) -> Array:
    """Return the launches of collectives that no known wait of the computing stream is for."""
    calls = shared.calls
    by_compute = known.lane == shared.main
    awaited = calls.enqueued.last_before(known.record_lane[by_compute], known.record[by_compute])
    of_awaited = calls.job.activities.cause[awaited[awaited >= 0]]
    return launches[~np.isin(calls.row[launches], of_awaited)]


def _of_compute(shared: SharedByRank, position: Array, launch: Array) -> StreamWaits:
    """Return guessed waits of the computing stream at some positions for work launched at other positions."""
    lane = np.full(len(position), shared.main)
    return StreamWaits.inferred(lane, position, shared.calls.launched[launch], launch + 1, Confidence.FIRST_POSSIBLE)


def _resolved(shared: SharedByRank, position: Array, candidates: list[Array], *, at_once: bool) -> StreamWaits | None:
    """Return which stream the waits of a site make wait, and for what; None if unknown.

    `candidates` are the streams that may be made to wait, the most natural first; `at_once` says that each wait comes
    right after the launch of a collective.
    """
    latest = shared.calls.lane_at(shared.calls.before[position])
    straight = [(latest, position, Plausible.YES)]
    current = _current(shared.calls, position, latest) if at_once else None
    others = [(lane, _hypotheses(shared, position, lane)) for lane in candidates]
    # on ties the compute stream waits, whatever is launched next
    behind = [(lane, iter(straight)) for lane in reversed(candidates) if at_once and (latest != lane).all()]
    for attempts in ([] if current is None else [(current, iter(straight))], behind, others):
        chosen: tuple[Answer, Array, Array] | None = None
        for lane, guesses in attempts:
            other = _asked(shared, position, lane, guesses)
            if other and (chosen is None or LIMITS.nearly_all * other[0].explained > chosen[0].explained):
                chosen = other
        if chosen is not None:
            answer, lane, position = chosen
            return StreamWaits.inferred(lane, position, answer.lane, answer.anchor, answer.confidence)
    return None


def _current(calls: Calls, position: Array, collective: Array) -> Array | None:
    """Return the current stream at waits right after collectives, which is the stream that waits; None if unknown.

    It is the stream of the last launch before the collective in the operator or annotation around the wait: that launch
    computed the data that the collective sends.
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


def _asked(
    shared: SharedByRank, position: Array, lane: Array, guesses: Iterator[Hypothesis]
) -> tuple[Answer, Array, Array] | None:
    """Return the best hypothesis if `lane` is made to wait, with lanes and positions of the waits that work follows."""
    target = shared.calls.enqueued.first_from(lane, position)
    keep = target >= 0
    if not keep.any():
        return None
    site = as_site(shared, position[keep], lane[keep], target[keep])
    restricted = ((guess[keep], anchor[keep], plausible) for guess, anchor, plausible in guesses)
    answer = best(shared.calls, site, restricted)
    return None if answer is None else (answer, lane[keep], position[keep])


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
    free = np.where(
        launch >= 0, np.maximum(free, acts.start[np.maximum(launch, 0)] + LIMITS.own_call_ns + LIMITS.launch_ns), free
    )
    return Site(position, acts.start[target], np.maximum(free, shared.awaited[target - shared.first]), shared.window)


def _places(calls: Calls, rank: int) -> list[tuple[Ordered, int]]:
    """Return the places where work on side streams ends, as (anchors, lane): its records, or, without any, launches."""
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
    beside = lanes != main
    at = at[beside]
    lanes = lanes[beside]
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
    return marked(len(key) - 1 - np.unique(key, return_index=True)[1], len(key))


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


def boundary_waits(calls: Calls, rank: int) -> Iterator[StreamWaits]:
    """Yield the stream waits of a rank whose trace has no calls that record events or wait for them.

    A collective waits for what the compute stream had enqueued by its launch. The compute stream waits for a collective
    right after its launch if the times of its call site show that. Otherwise kernels wait for a collective if they
    started right after its end without another reason, and for gathered data behind the launch of the next gather.
    """
    shared = SharedByRank.of(calls, rank)
    launches = launches_of_collectives(calls, rank, shared.main)
    sides = [launches[rows] for rows in grouped(mixed(calls.site[launches], calls.launched[launches]))]
    found: list[StreamWaits] = []
    for position in sides:
        source = calls.elsewhere(position, calls.launched[position])
        source = np.where(np.isin(source, shared.quiet) | (source < 0), shared.main, source)
        found += _tested(shared, position, calls.launched[position], source, Plausible.YES)
    for position in sides:
        main = np.full(len(position), shared.main)
        found += _tested(shared, position + 1, main, calls.launched[position], Plausible.NO)
    found.append(_right_behind(shared, launches))
    waits, launch = behind_the_next(calls, _not_awaited(shared, launches, StreamWaits.concatenate(found)))
    found.append(_of_compute(shared, waits, launch))
    yield from found


def _tested(
    shared: SharedByRank, position: Array, lane: Array, source: Array, plausible: Plausible
) -> Iterator[StreamWaits]:
    """Yield the waits of a call site if the times allow them and, unless they are plausible, they explain something."""
    found = _asked(shared, position, lane, iter([(source, position, plausible)]))
    if found is None:
        return
    answer, lane, position = found
    confidence = Confidence.NOT_RECORDED if answer.explained > answer.unexplained else Confidence.EVEN
    waits = StreamWaits.inferred(lane, position, answer.lane, position, confidence)
    shared.learn(waits)
    yield waits


def _right_behind(shared: SharedByRank, launches: Array) -> StreamWaits:
    """Return the waits of compute kernels that start right after an earlier collective ends, for no other reason."""
    calls = shared.calls
    acts = calls.job.activities
    rank = int(calls.job.lanes[shared.main].rank)
    of_rank = acts.of_rank(rank)
    collective = of_rank.start + np.flatnonzero(
        (acts.kind[of_rank] == ActivityKind.COMMUNICATION) & (acts.cause[of_rank] >= 0)
    )
    collective = collective[np.isin(calls.position[acts.cause[collective]], launches)]
    own = calls.of_rank(rank)
    position = own.start + np.flatnonzero(calls.launched[own] == shared.main)
    lane = np.full(len(position), shared.main)
    site = as_site(shared, position, lane, calls.enqueued.first_from(lane, position))
    idle = (site.free > np.iinfo(np.int64).min) & (site.over > site.free + LIMITS.tick_ns)
    position = position[idle]
    ends = Ends.of(collective, acts.end[collective])
    source, sure = _released(ends, site.over[idle], site.free[idle], shared.window, calls.site[position])
    record = calls.position[acts.cause[source]] + 1
    waits = (sure > 0) & (record <= position)
    lane = lane[idle]
    first = acts.lane[source[waits]].astype(np.int64)
    return StreamWaits.inferred(lane[waits], position[waits], first, record[waits], sure[waits])


def _released(ends: Ends, moment: Array, since: Array, window: int, role: Array) -> tuple[Ints, Ints]:
    """Return (the work whose end released each work of a stream, how surely, percent); 0 where none did.

    The stream was idle and the work enqueued, so it waited. Whether for these ends, all starts of a role tell together.

    Args:
        ends: the ends that may have released the work.
        moment: when each work starts, ns.
        since: when it could have started, ns.
        window: waiting work starts this soon after the awaited work ended, ns.
        role: equal for work of one place in the program.
    """
    sure = np.zeros(len(moment), np.int64)
    if not len(ends.row):
        return sure, sure
    odds = after_idle(ends, moment, since, window)
    near = odds[0] > 0
    for rows in grouped(role):
        if near[rows].any():
            sure[rows] = of_each(odds[:, rows])
    source = ends.row[np.maximum(0, ends.last(moment + LIMITS.tick_ns))]
    return source, np.where(near, sure, 0)


def idle_ends(calls: Calls, source: Array, target: Array) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) of waits between streams that only the times tell.

    `source` and `target` are the waits that are known already.
    """
    acts = calls.job.activities
    free = np.full(len(acts), np.iinfo(np.int64).min)
    np.maximum.at(free, target, acts.end[source])
    parts = [_of_rank(calls, rank, free) for rank, lanes in calls.lanes.items() if len(lanes) > 1]
    first, second, sure = joined(parts, 3)
    return first, second, sure


def _of_rank(calls: Calls, rank: int, free: Ints) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) for one rank; what each activity is known to wait for ended at `free`, ns."""
    acts, window = calls.job.activities, start_window(calls, rank)
    enqueued, lanes = calls.enqueued, calls.lanes[rank]
    work = enqueued.work[slice(*np.searchsorted(enqueued.lane, (lanes.min(), lanes.max() + 1)))]
    work = work[np.lexsort((acts.start[work], acts.lane[work]))]
    behind = np.append(False, acts.lane[work[1:]] == acts.lane[work[:-1]])
    idle_from = np.where(behind, np.append(0, acts.end[work[:-1]]), np.iinfo(np.int64).max)
    cause = acts.cause[work]
    ready = np.where(cause >= 0, acts.start[np.maximum(cause, 0)], np.iinfo(np.int64).min)
    ready = np.maximum(np.maximum(ready, free[work]), idle_from)
    long = (idle_from < acts.start[work]) & (ready + LIMITS.idle_start_ns < acts.start[work])
    target, since = work[long], ready[long]
    ends = Ends.of(work, acts.end[work])
    launch = _launch_positions(calls, target)
    site = np.zeros(len(target), np.uint64)
    site[launch >= 0] = calls.site[launch[launch >= 0]]
    source, sure = _released(ends, acts.start[target], since, window, mixed(site, acts.name[target]))
    first = _launch_positions(calls, source)
    before = (first < 0) | (launch < 0) | (first < launch)  # was enqueued first, as far as the calls are known
    waits = (sure > 0) & (acts.lane[source] != acts.lane[target]) & before
    return source[waits], target[waits], sure[waits]


def _launch_positions(calls: Calls, work: Array) -> Array:
    """Return the position of the call that launched each work of a device; -1 where no call is recorded."""
    cause = calls.job.activities.cause[work]
    launch = np.full(len(work), -1, np.int64)
    launch[cause >= 0] = calls.position[cause[cause >= 0]]
    return launch
