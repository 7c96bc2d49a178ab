"""Calls, loops and pauses that wait for the device without saying so.

Some calls are known by name: the documentation says that they synchronize (`cudaFree`, loading a module). Any other
call is known by its times: it was long, and it returned right after the end of all that had been enqueued before it,
or, for launches, of the work that it launched.

A loop asks again and again whether work is over. The evidence is when it ends: the last question but one was asked
while the work ran, the last one when it was over. An allocator that asks, and goes on whatever the answer, does not
stop asking at such moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, coded, inverse_of, joined, marked, spread
from htagraph.core.computing import rows_where
from htagraph.core.kinds import ANNOTATIONS, DEVICE, FRAMES, HOST, ActivityKind, of_kinds
from htagraph.core.naming import is_graph_launch, is_memory_call, is_poll, names_like, names_that
from htagraph.graph.accept import Ends, as_own_work, confidence, is_refuted, support
from htagraph.graph.evidence.calls import Calls, grouped, last_ends, mixed, owners, work_before
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.waits import (
    Answer,
    Hypothesis,
    Plausible,
    Returns,
    Site,
    best,
    records_back,
    returns,
    returns_by_rank,
)
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["Polled", "implicit_syncs", "polled"]

_DONE = tuple(kind for kind in HOST if kind.is_work and kind is not ActivityKind.PYTHON)
"""Kinds of a host thread's activities: operators and calls."""


def implicit_syncs(calls: Calls) -> tuple[Array, Array, Array, Array]:
    """Return (work, call, own time, confidence) of runtime calls that wait for the device without saying so.

    There is a row for each call and stream with work before it: the last work that was enqueued there before the call.
    The own time is that of the call once all that work had ended, ns; the confidence is in percent.
    """
    acts = calls.job.activities
    host = np.flatnonzero(of_kinds(acts.kind, (ActivityKind.RUNTIME, ActivityKind.LAUNCH)))
    documented = names_like(calls.job.naming.implicit_sync, calls.job.names, acts.name[host])
    plain = ~documented & (acts.duration[host] >= LIMITS.long_call_ns)
    if plain.any():
        other = [names_that(fits, calls.job.names) for fits in (is_memory_call, is_graph_launch)]
        plain &= ~(other[0] | other[1])[acts.name[host]]
    chosen = documented | plain
    call, by_name = host[chosen], documented[chosen]
    rank, begin, end = acts.rank[call].astype(np.int64), acts.start[call], acts.end[call]
    position = calls.from_moment(rank, begin)
    order = np.argsort(begin, kind="stable")
    source, number = work_before(calls, rank[order], position[order], acts.lane[call][order])
    pairs, over = order[number], last_ends(calls, rank, position)
    confidence = np.where(by_name, _known_by_name(calls, call, over), _known_by_times(calls, call, over))
    keep = confidence[pairs] > 0
    source, pairs = source[keep], pairs[keep]
    own = end - np.maximum(begin, over)
    of_others = source, call[pairs], np.maximum(0, own[pairs]), confidence[pairs]
    source, waiting, own, sure = joined((of_others, _waits_for_own_work(calls)), 4)
    return source, waiting, own, sure


def _waits_for_own_work(calls: Calls) -> tuple[Array, Array, Array, Array]:
    """Return the rows of `implicit_syncs` for launches that return when their own work is over.

    Synchronous back ends do so, and CUDA with CUDA_LAUNCH_BLOCKING: nearly all launches of a name on a rank return
    after their work. Other launches return before their work begins.
    """
    acts = calls.job.activities
    work = np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.cause >= 0))  # of copies: `memcpy_sync`
    work = work[acts.kind[acts.cause[work]] == ActivityKind.LAUNCH]
    call = acts.cause[work]
    tolerance, _, _ = returns_by_rank(calls, acts.rank[call])
    over = acts.end[work] <= acts.end[call] + tolerance
    long = acts.duration[work] >= LIMITS.two_clocks_ns  # launches with short work contain it by chance
    sure = _sure_of_calls(calls, call, acts.end[work], coded(acts.rank[call], acts.name[call]), over, long)
    waits = over & (sure > 0)
    work, call = work[waits], call[waits]
    return work, call, np.maximum(0, acts.end[call] - acts.end[work]), sure[waits]


def _sure_of_calls(
    calls: Calls,
    call: Array,
    end: Array,
    role: Array,
    possible: Mask,
    telling: Mask,
) -> Ints:
    """Return how surely each call waits for the work that ended at a moment (ns), as all calls of its role show.

    Args:
        calls: the calls of the job.
        call: the calls, as activities.
        end: when the work ended, ns.
        role: equal for calls of one role.
        possible: which calls can have waited for that.
        telling: which calls would show it if they waited.
    """
    acts = calls.job.activities
    until = end - acts.start[call]
    _, window, _ = returns_by_rank(calls, acts.rank[call])
    out = np.zeros(len(call), np.int64)
    for rows in grouped(role):
        shown = rows[telling[rows]]
        if possible[shown].any():
            longest = int(window[shown].max())
            lasts = acts.duration[call[shown]]
            odds = as_own_work(lasts, until[shown], longest, fitted=False, possible=possible[shown])
            out[rows] = confidence(odds, natural=True)
    return out


def _known_by_name(calls: Calls, call: Array, over: Array) -> Array:
    """Return the confidence of each call as one whose documentation says that it waits; 0 where the times refute it."""
    acts = calls.job.activities
    tolerance, _, _ = returns_by_rank(calls, acts.rank[call])
    pending = over > acts.start[call] + LIMITS.two_clocks_ns
    refuted = pending & (over > acts.end[call] + tolerance)
    out = np.zeros(len(call), np.int64)
    for role in grouped(acts.name[call]):
        shown = role[pending[role]]
        if not is_refuted(~refuted[shown]):
            out[role] = Confidence.SURE if len(shown) else Confidence.LIKELY
    return np.where(refuted, 0, out)


def _known_by_times(calls: Calls, call: Array, over: Array) -> Array:
    """Return the confidence of each call as one that was seen to wait; 0 where it was not."""
    acts = calls.job.activities
    _, window, soonest = returns_by_rank(calls, acts.rank[call])
    right = support(over, acts.end[call], acts.start[call], window, -soonest)[1]
    sure = _sure_of_calls(calls, call, over, acts.name[call], right, over - acts.start[call] >= LIMITS.long_call_ns)
    return np.where(right, sure, 0)


class Polled(NamedTuple):
    """Work that loops of questions, and pauses, wait for."""

    source: Array
    """The work that a moment waits for."""
    vertex: Array
    """The moment: each one in a loop up to the beginning of its last question, or the end of a question or a pause."""
    over: Mask
    """Whether the work was over before the question or the pause began: it would have been waited for."""
    sure: Array
    """How surely it waits, percent."""


def _of_pauses(calls: Calls) -> Iterator[Polled]:
    """Yield the waits of pauses that end with device work, though no call shows it.

    A site is all long stretches, on any rank and without a call, with the same moments around them, or where no work
    explains these, with the same moments before them. The host may poll memory that a kernel writes shortly before the
    end of the kernel: the pause may then be over before that.
    """
    job, acts = calls.job, calls.job.activities
    source, target, owner = job.slices
    moment, long = acts.moment, LIMITS.long_call_ns
    rows = rows_where(lambda part: moment(target[part]) - moment(source[part]) >= long, len(source))
    own = owner[rows]
    rows = rows[(job.loaders[rows] < 0) & ((own < 0) | of_kinds(acts.kind[own], FRAMES))]
    rows = rows[np.isin(acts.rank[target[rows] >> 1], list(calls.lanes))]
    rank, begin = acts.rank[target[rows] >> 1].astype(np.int64), acts.moment(source[rows])
    position = calls.from_moment(rank, begin)
    pending = last_ends(calls, rank, position) > begin + LIMITS.two_clocks_ns
    around = np.stack((source[np.maximum(rows - 2, 0)], source[np.maximum(rows - 1, 0)], source[rows], target[rows]))
    words = np.where(of_kinds(acts.kind[around >> 1], ANNOTATIONS), -1, acts.name[around >> 1])  # some number steps
    places = 2 * words + (around & 1)
    is_open = np.ones(len(rows), np.bool_)
    for site in _sites(places):
        if np.count_nonzero(pending[site]) < LIMITS.often or not is_open[site].any():
            continue
        moments = target[rows[site]]
        work, explained, sure = _explained(calls, position[site], moments, begin[site], rank[site])
        over = (work >= 0) & (acts.end[work] <= begin[site])
        is_new = (explained | over) & is_open[site]
        is_open[site[explained]] = False
        yield Polled(work[is_new], moments[is_new], over[is_new], np.full(np.count_nonzero(is_new), sure))


def _sites(places: Array) -> Iterator[Ints]:
    """Yield the pauses between the same moments, and then the pauses after the same moments.

    A program may do different things after a wait at one place.

    Args:
        places: one column per pause: the moments before the pause and, last, the moment at its end, as numbers.
    """
    yield from grouped(mixed(*places))
    yield from grouped(mixed(*places[:-1]))


class _AwaitedByPauses(NamedTuple):
    """The work that pauses of one place may wait for."""

    work: Array
    """The work by pause, -1 for none."""
    explained: Mask
    """Which pauses the work explains."""
    sure: int
    """How surely the pauses wait for the work, percent; 0 if chance may make them end with it."""


def _explained(
    calls: Calls,
    position: Array,
    moments: Array,
    begin: Array,
    rank: Array,
) -> _AwaitedByPauses:
    """Return the work that pauses of one place may wait for, by the least errors of clocks that explain any.

    Args:
        calls: the calls of the job.
        position: the position of the first call after each pause began.
        moments: the vertex at the end of each pause.
        begin: when each pause began, ns.
        rank: the rank of each pause.
    """
    over = calls.job.activities.moment(moments)
    usual = int(returns_by_rank(calls, rank)[0].max())
    for tolerance in (usual, max(usual, LIMITS.signal_ns)):
        waits = Site(position, over, begin, LIMITS.long_call_ns, tolerance)
        awaited = _ends_with(calls, waits, rank)
        if awaited.sure:
            break
    return awaited


def _ends_with(calls: Calls, site: Site, rank: Array) -> _AwaitedByPauses:
    """Return the work that pauses of a site may wait for; all -1 if chance may make them end so."""
    acts = calls.job.activities
    awaited = _AwaitedByPauses(np.full(len(rank), -1, np.int64), np.zeros(len(rank), np.bool_), 0)
    for work, alternatives in _works(calls, site, rank):
        end = acts.end[work]
        possible, explained = support(end, site.over, site.free, site.window, site.tolerance)
        visible = (work >= 0) & (end > site.free + LIMITS.tick_ns)
        explained &= visible
        if np.count_nonzero(visible & ~possible) > LIMITS.damaged * len(rank):
            continue
        if _confidence(site, end, visible, explained, alternatives) > awaited.sure:
            explained &= ~_others_end(calls.job, rank, end, site.over)
            sure = _confidence(site, end, visible, explained, alternatives)
            if sure > awaited.sure:
                awaited = _AwaitedByPauses(np.where(possible, work, -1), explained, sure)
    return awaited


def _works(calls: Calls, site: Site, rank: Array) -> Iterator[tuple[Array, float]]:
    """Yield (the work that each pause of a site may wait for, in how many ways else it might have agreed).

    That is the last work on all streams, that on the n-th busiest one of each rank, and the one so many before that
    agrees most often: an event may have been recorded behind it.
    """
    acts, enqueued = calls.job.activities, calls.enqueued
    ranks, number = np.unique(rank, return_inverse=True)
    count = min(LIMITS.tried, max(len(calls.lanes[each]) for each in ranks.tolist()))
    table = np.array([np.resize(np.append(calls.lanes[each], np.full(count, -1)), count) for each in ranks.tolist()])
    lanes = table[number.ravel()].T
    last = np.array([enqueued.last_before(lane, site.position) for lane in lanes])
    ends = np.where(last >= 0, acts.end[last], np.iinfo(np.int64).min)
    yield last[ends.argmax(axis=0), np.arange(len(rank))], count + 1
    for lane, work in zip(lanes, last, strict=True):
        yield work, count + 1
        nearest = np.maximum(0, enqueued.back_to(lane, site.position, site.over + site.tolerance))
        most = enqueued.back_to(lane, site.position, site.over - site.window)
        possible = most > nearest
        if np.count_nonzero(possible) >= LIMITS.often:
            back = _most_often(nearest[possible], most[possible])
            between = enqueued.back_to(lane, site.position, site.free) - nearest
            yield enqueued.last_before(lane, site.position, back), count * float(np.maximum(1, between).mean())


def _most_often(first: Array, behind: Array) -> int:
    """Return the least number that lies in most of some ranges, given by their first number and the one behind."""
    edges = np.concatenate((first, behind))
    order = np.lexsort((np.repeat((1, 0), len(first)), edges))
    depth = np.cumsum(np.repeat((1, -1), len(first))[order])
    return int(edges[order[depth.argmax()]])


def _confidence(site: Site, end: Array, visible: Mask, explained: Mask, alternatives: float) -> int:
    """Return how surely pauses of a site end with work that ended at `end` (ns), of so many ways to do so, percent."""
    if not explained.any():
        return 0
    lasts, until = (site.over - site.free)[visible], (end - site.free)[visible]
    longest = site.window + site.tolerance
    odds = as_own_work(lasts, until, longest, fitted=False, possible=explained[visible])
    return confidence(odds, alternatives=alternatives)


def _others_end(job: RecordedJob, rank: Array, since: Array, until: Array) -> Mask:
    """Return which times, ns, hold the end of something that a thread of the rank did: it may have released a pause."""
    out, acts = np.zeros(len(rank), np.bool_), job.activities
    for each in np.unique(rank).tolist():
        own, rows = acts.of_rank(each), rank == each
        done = own.start + np.flatnonzero(of_kinds(acts.kind[own], _DONE))
        out[rows] = Ends.of(done, acts.end[done]).between(since[rows], until[rows] - 1)
    return out


class _Loops(NamedTuple):
    """Rows of questions of one thread with nothing but Python between them."""

    first: Array
    """The first question of each."""
    before_last: Array
    """The last one that was asked in vain; where there is one question only, that one."""
    last: Array
    key: npt.NDArray[np.uint64]
    """Equal for loops of one place and thread."""


def polled(calls: Calls) -> Polled:
    """Return which moments of host threads wait for which device work by asking again and again."""
    parts = list(_of_pauses(calls))
    acts, loops = calls.job.activities, _loops(calls)
    place = inverse_of(calls.job.boundaries, 2 * len(acts)) if len(loops.key) else loops.first
    for rows in grouped(loops.key):
        of_place = _Loops(loops.first[rows], loops.before_last[rows], loops.last[rows], loops.key[rows])
        rank = int(acts.rank[of_place.first[0]])
        if rank in calls.lanes and (of_place.first != of_place.last).any():
            parts += _of_loops(calls, of_place, returns(calls, rank), place)
    source, vertex, over, sure = joined(parts, 4)
    return Polled(source, vertex, over.astype(np.bool_), sure)


def _loops(calls: Calls) -> _Loops:
    """Return the rows of questions of all threads that also do something else."""
    job, acts = calls.job, calls.job.activities
    asks = (acts.kind == ActivityKind.RUNTIME) & names_that(is_poll, job.names)[acts.name]
    if not asks.any():
        none = np.zeros(0, np.int64)
        return _Loops(none, none, none, none.astype(np.uint64))
    works = of_kinds(acts.kind, (*_DONE, *DEVICE))
    item = job.boundaries[job.boundaries & 1 == 0] >> 1
    item = item[works[item]].astype(np.int64)
    also = marked(acts.lane[item[~asks[item]]], len(job.lanes))
    item = item[also[acts.lane[item]]]
    key = np.zeros(len(item), np.uint64)
    rows = np.flatnonzero(asks[item])
    key[rows] = mixed(owners(acts, item[rows])[1], acts.lane[item[rows]])
    goes_on = np.append(False, key[1:] == key[:-1])[: len(item)] & asks[item]
    first = np.flatnonzero(asks[item] & ~goes_on)
    last = np.flatnonzero(asks[item] & ~np.append(goes_on[1:], False)[: len(item)])
    return _Loops(item[first], item[np.maximum(first, last - 1)], item[last], key[first])


def _of_loops(calls: Calls, loops: _Loops, clock: Returns, place: Array) -> Iterator[Polled]:
    """Yield the waits of loops of one place; `place` is where each vertex is among the moments of all threads."""
    acts, moments = calls.job.activities, calls.job.boundaries
    since = acts.start[loops.before_last] - clock.window  # that work is over shows as late as a blocked call returns
    again = loops.first != loops.last
    over = acts.end[loops.last]
    position = calls.from_moment(acts.rank[loops.first], acts.start[loops.first])
    site = Site(position, over, np.where(again, since, over), np.iinfo(np.int64).max, clock.tolerance)
    answer = best(calls, site, _guesses(calls, loops, position))
    sure = 0 if answer is None else _sure(answer, loops, acts.start[loops.first], over - since, over)
    if answer is None or not sure:
        return
    source = answer.source
    end = acts.end[np.maximum(source, 0)]
    in_time = (source >= 0) & (end <= over + clock.tolerance)
    waits = in_time & again & (end > since + LIMITS.tick_ns)
    single = in_time & ~again
    owner, at = spread(place[2 * loops.first[waits] + 1] + 1, place[2 * loops.last[waits]] + 1)
    yield Polled(
        source[waits][owner], moments[at].astype(np.int64), np.zeros(len(at), np.bool_), np.full(len(at), sure)
    )
    count = np.count_nonzero(single)
    yield Polled(source[single], 2 * loops.last[single] + 1, np.ones(count, np.bool_), np.full(count, sure))


def _sure(answer: Answer, loops: _Loops, start: Array, pause: Array, over: Array) -> int:
    """Return how surely loops end with the work, or up to `pause` ns behind it, percent; 0 if chance may do it."""
    asked = loops.first != loops.last
    chance = np.minimum(1, pause / np.maximum(1, over - start))[asked]
    agree = np.arange(len(chance)) < answer.explained
    odds = np.where(agree, 1 / np.sort(chance)[::-1], 0)  # those that agree most easily by chance
    return confidence(odds[None], alternatives=answer.number + 1) if len(chance) else 0


def _guesses(calls: Calls, loops: _Loops, position: Array) -> Iterator[Hypothesis]:
    """Yield the work that loops may wait for: up to one of the latest events of the thread, or a stream's last work."""
    acts = calls.job.activities
    name = acts.name[loops.first[:1]]
    if names_like("Event", calls.job.names, name)[0]:
        thread = acts.lane[loops.first].astype(np.int64)
        for record, lane in records_back(calls, position, thread):
            yield lane, record, Plausible.YES
    for lane in calls.lanes[int(acts.rank[loops.first[0]])][: LIMITS.tried]:
        yield np.full(len(position), lane), position, Plausible.YES
