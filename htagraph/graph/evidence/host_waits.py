"""Where a host thread waits for a collective that it enqueued on another host thread (gloo): ``work.wait()``.

No event records such a wait. Where it blocked, the thread goes on shortly after the collective ends. Where the
collective was over in time, nothing shows the wait, but in a what-if with a slower collective, or with faster work
beside it, it blocks. So the place is taken from other instances of the same call site, or else chosen among those that
are possible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import collective_op, is_wait, names_that
from htagraph.core.parents import ancestors, nearest
from htagraph.graph.accept import Odds, as_own_work, median_of_others, ratio
from htagraph.graph.evidence.calls import grouped, mixed, owners
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.threads import HostThread, places_of
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["enqueued_works", "host_waits"]


def enqueued_works(job: RecordedJob, calls: Array, works: Array) -> tuple[Array, Array]:
    """Return (call, work) pairs of a rank: which operator enqueued which collective, by the time of the call.

    Collectives start in the order in which they are enqueued. Where there are as many calls as collectives, that order
    decides. Otherwise each collective belongs to the last call before it that no later collective belongs to.
    """
    calls = calls[np.argsort(job.moment(2 * calls), kind="stable")]
    works = works[np.argsort(job.moment(2 * works), kind="stable")]
    if len(calls) == len(works):
        return calls, works
    latest = np.searchsorted(job.moment(2 * calls), job.moment(2 * works), side="right") - 1
    number = np.arange(len(works))
    at = np.minimum.accumulate((latest - number)[::-1])[::-1] + number
    known = at >= 0
    return calls[at[known]], works[known]


def host_waits(job: RecordedJob, thread: HostThread, calls: Array, works: Array) -> tuple[Array, Array, Array]:
    """Return (collective, vertex at which the thread goes on, confidence) of each wait for what the thread enqueued.

    A thread waits for a collective once at most. The vertex is the thread's first moment after the wait.

    `calls` are the thread's operators that enqueued collectives, in order, and `works` these collectives.
    """
    timeline = _timeline(job, thread, calls)
    issued = _Issued.of(job, timeline, calls, works)
    place = np.full(len(calls), -1)
    confidence = np.zeros(len(calls), np.int64)
    halfway = issued.end - job.activities.duration[works] // 2
    for rows in grouped(_site(job, timeline, issued)):
        _put_aside(timeline, issued, rows, halfway)
        place[rows], confidence[rows] = _places(timeline, issued, rows)
    _batches(timeline, issued, place, confidence)
    waited = place >= 0
    return works[waited], _resumes(timeline, issued, place)[waited], confidence[waited]


class _Timeline(NamedTuple):
    """The moments of a thread without those of Python frames; between two of them lies a stretch."""

    thread: HostThread
    shown: Array
    """Which moments of the thread they are."""
    frames: Array
    """Which moments of the thread are ends of Python frames that wait, by their names."""
    times: Array
    free: Mask
    """Whether the thread may wait in the stretch after each moment: no operator runs there, or one that enqueued a
    collective, runs hooks, or waits by its name."""
    named: Mask
    """Whether a Python frame that waits, by its name, ends in the stretch after each moment."""
    after_backward: Mask
    """Whether no backward operator lies around each moment."""
    key: npt.NDArray[np.uint64]
    """Equal for moments of one place in the program."""
    by_key: Array
    """The positions of all moments, sorted by key and then by time."""

    def of_key(self, key: np.uint64) -> Array:
        """Return the positions of the moments with a key."""
        keys = self.key[self.by_key]
        return self.by_key[np.searchsorted(keys, key) : np.searchsorted(keys, key, side="right")]

    def position(self, vertex: Array) -> Array:
        """Return the positions of some vertices."""
        return places_of(self.thread.vertices[self.shown], vertex)

    def first(self, wanted: Mask, since: Array, moment: Array) -> Array:
        """Return the first position behind a wanted stretch, after a position and not before a moment (ns), or -1."""
        behind = np.flatnonzero(wanted[:-1]) + 1
        not_before = np.maximum(since + 1, np.searchsorted(self.times, moment))
        at = np.searchsorted(behind, not_before)
        return np.append(behind, -1)[at]


def _timeline(job: RecordedJob, thread: HostThread, calls: Array) -> _Timeline:
    acts = job.activities
    owner = thread.vertices // 2
    is_frame = acts.kind[owner] == ActivityKind.PYTHON
    shown = np.flatnonzero(~is_frame)
    running = thread.running[shown]
    waits = names_that(is_wait, job.names)
    may_wait = waits[acts.name] | job.backward_names[acts.name]  # the engine's operator runs hooks
    may_wait |= ancestors(acts.parent, calls)
    frames = np.flatnonzero(is_frame & (thread.vertices % 2 == 1) & waits[acts.name[owner]])
    named = marked(np.searchsorted(shown, frames) - 1, len(shown))
    free = (running < 0) | (acts.kind[running] == ActivityKind.PYTHON) | may_wait[running]
    rows = owner[shown]
    path = np.where(acts.kind[rows] == ActivityKind.STEP, np.uint64(0), owners(acts, rows)[1])
    key = mixed(path, thread.vertices[shown] % 2)
    by_key = np.argsort(key, kind="stable")
    outside = ~_in_backward(job, rows)
    return _Timeline(thread, shown, frames, thread.times[shown], free, named, outside, key, by_key)


def _in_backward(job: RecordedJob, rows: Array) -> Mask:
    """Return which activities are backward operators or inside one."""
    acts = job.activities
    return nearest(acts.parent, job.backward_names[acts.name] | (job.forward_thread > 0), rows) >= 0


class _Issued(NamedTuple):
    """The calls of a thread that enqueued collectives, in order."""

    call: Array
    since: Array
    """Position in the timeline of the end of each call."""
    end: Array
    """When its collective ended, ns."""
    soonest: Array
    """When its collective may have been over at the soonest, ns: its record may end late."""
    blocked: Array
    """Position of the moment after the stretch in which the thread waited for the collective, else -1."""
    in_backward: Mask
    """Whether each call is made during backward and sums gradients."""

    @staticmethod
    def of(job: RecordedJob, timeline: _Timeline, calls: Array, works: Array) -> _Issued:
        since = timeline.position(2 * calls + 1)
        end = job.moment(2 * works + 1)
        soonest = end - np.minimum(LIMITS.slice_ns, job.activities.duration[works] // 2)
        reduces = names_that(lambda name: "reduce" in collective_op(name, host=True), job.names)
        blocked, reduced = _blocked(timeline, since, soonest, end), reduces[job.activities.name[calls]]
        return _Issued(calls, since, end, soonest, blocked, reduced & _in_backward(job, calls))


def _blocked(timeline: _Timeline, since: Array, soonest: Array, end: Array) -> Array:
    """Return the position behind the longest stretch in which the thread may have waited for each collective, or -1.

    Such a stretch ends when the collective may have been over, between `soonest` and the first moment behind `end`, ns,
    and no further from the end of the record than half the length of the stretch. A short stretch ends behind it.
    """
    times, last = timeline.times, len(timeline.times) - 1
    first = np.maximum(since, np.searchsorted(times, soonest) - 1)
    behind = np.minimum(np.searchsorted(times, end, side="right") - 1, last - 1)
    out = np.full(len(since), -1)
    for i, (low, high) in enumerate(zip(first.tolist(), behind.tolist(), strict=True)):
        at = np.arange(low, high + 1)
        lasts = times[at + 1] - times[at]
        late = (times[at + 1] >= end[i]) | (lasts >= LIMITS.turn_ns)
        at = at[timeline.free[at] & late & (2 * np.abs(times[at + 1] - end[i]) <= lasts)]
        if len(at):
            out[i] = at[(times[at + 1] - times[at]).argmax()] + 1
    return out


def _put_aside(timeline: _Timeline, issued: _Issued, rows: Array, halfway: Array) -> None:
    """Let records of a call site end late by more than a slice, where the thread's pauses follow their ends.

    On a crowded host, a thread that is done waits for several others. Pauses that are no waits last as long as ever,
    and end anywhere.
    """
    since, end, soonest = issued.since[rows], issued.end[rows], halfway[rows]
    place = _common(timeline, since, issued.soonest[rows], issued.blocked[rows])
    if ((place >= 0) & (timeline.times[place] <= end + LIMITS.turn_ns)).mean() > LIMITS.most:
        return  # else a later wait, in which some ended by chance
    blocked = _blocked(timeline, since, soonest, end)
    seen = (blocked >= 0) & (_common(timeline, since, soonest, blocked) == blocked)
    begin = timeline.times[blocked[seen] - 1]
    over = timeline.times[blocked[seen]]
    if len(begin) < 2:
        return
    missed = ((0, 0), (0, len(rows) - len(begin)))
    odds = [np.pad(each, missed) for each in _odds(over - begin, end[seen] - begin)]
    if ratio(*odds)[0] > 0:  # somewhere, the thread waits for what it enqueued: here rather than elsewhere
        issued.soonest[rows], issued.blocked[rows] = soonest, blocked


def _odds(paused: Ints, left: Ints) -> tuple[Odds, Odds]:
    """Return the odds of pauses that last as long as the collectives took from where they begin, or a share of that."""
    shares = median_of_others(paused / np.maximum(1, left))
    longest = int(paused.max())
    exact = as_own_work(paused, left, longest, fitted=False)
    return exact, as_own_work(paused, (shares * left).astype(np.int64), longest, fitted=True)


def _site(job: RecordedJob, timeline: _Timeline, issued: _Issued) -> npt.NDArray[np.uint64]:
    """Return a number per call, equal for instances of one call site.

    In steps that is the n-th call of its place in the program in each step; elsewhere, what comes next counts too.
    """
    acts = job.activities
    path, step = timeline.key[issued.since], acts.step[issued.call].astype(np.int64)
    behind = timeline.key[np.minimum(issued.since + 1, len(timeline.key) - 1)]
    number = np.zeros(len(path), np.int64)
    for rows in grouped(mixed(path, step)):
        number[rows] = np.arange(len(rows))
    return mixed(path, np.where(step >= 0, number, -1), np.where(step >= 0, np.uint64(0), behind))


def _places(timeline: _Timeline, issued: _Issued, rows: Array) -> tuple[Array, Array]:
    """Return (position after the wait or -1, confidence) for each instance of a call site."""
    blocked, since, end = issued.blocked[rows], issued.since[rows], issued.soonest[rows]
    place = _common(timeline, since, end, blocked)
    if (place >= 0).any():
        place = np.where(place >= 0, place, blocked)
        return place, np.where(blocked == place, Confidence.LIKELY, Confidence.ELSEWHERE)
    if issued.in_backward[rows].any():
        returns = timeline.free & np.append(timeline.after_backward[1:], True)
        place = timeline.first(returns, since, timeline.times[since])
        if _possible(timeline, end, place):
            return place, np.full(len(rows), Confidence.COUNTED)
    is_named, end = bool(timeline.named.any()), issued.end[rows]  # no wait blocked, so none shows a late record
    place = _common(timeline, since, end, timeline.first(timeline.named if is_named else timeline.free, since, end))
    return place, np.full(len(rows), Confidence.ELSEWHERE if is_named else Confidence.FIRST_POSSIBLE)


def _possible(timeline: _Timeline, end: Array, place: Array) -> bool:
    """Return whether the collectives of nearly all instances end before the moments at some positions (-1: none)."""
    known = place >= 0
    return bool(known.any() and (timeline.times[place] >= end)[known].mean() >= LIMITS.nearly_all)


def _common(timeline: _Timeline, since: Array, end: Array, seen: Array) -> Array:
    """Return the position of one place of the program in each instance of a call site, or -1.

    Of the places `seen` (-1 where that is unknown) it is the one that is possible in nearly all instances; among
    several, the one where the stretches seen last longest in total.
    """
    known = np.flatnonzero(seen >= 0)
    places: list[tuple[int, Array]] = []
    left = known
    while len(left):
        at = timeline.of_key(timeline.key[seen[left[0]]])
        begin = np.searchsorted(at, since, side="right")
        ordinal = int(np.searchsorted(at, seen[left[0]]) - begin[left[0]])
        place = np.append(at, -1)[np.minimum(begin + ordinal, len(at))]
        here = place[left] == seen[left]
        if _possible(timeline, end, place):
            at_place = seen[left[here]]
            lasts = int((timeline.times[at_place] - timeline.times[at_place - 1]).sum())
            places.append((lasts, np.where(timeline.times[place] >= end, place, -1)))
        left = left[~here]
    return max(places, key=lambda each: each[0])[1] if places else np.full(len(since), -1)


def _batches(timeline: _Timeline, issued: _Issued, place: Array, confidence: Array) -> None:
    """Set the place of collectives enqueued one right after the other to that of the last one, where it is a guess.

    A program that enqueues several at once waits for them at once.
    """
    begins = timeline.position(2 * issued.call)
    last = len(place) - 1
    for i in range(len(place) - 2, -1, -1):
        if begins[i + 1] > issued.since[i] + 1:
            last = i
            continue
        at_once = issued.since[i] + 1 < place[i] <= begins[last]  # it blocked for a moment between two calls, by chance
        is_guess = confidence[i] <= Confidence.FIRST_POSSIBLE or place[i] < 0 or at_once
        if is_guess and place[last] >= 0 and timeline.times[place[last]] >= issued.soonest[i]:
            place[i], confidence[i] = place[last], min(confidence[last], Confidence.COUNTED)


def _resumes(timeline: _Timeline, issued: _Issued, place: Array) -> Array:
    """Return the vertex of the thread's first moment after each wait, which may be one of a Python frame.

    Where the thread blocked, that is the moment behind the longest of the stretches in which the collective may have
    been over, up to the end of its record. Elsewhere it is the end of the first frame that waits, by its name, or else
    the moment at the position.
    """
    thread = timeline.thread
    at = timeline.shown[place]
    begins = timeline.shown[place - 1]
    for i in np.flatnonzero((place >= 0) & (at > begins + 1)).tolist():
        inside = np.arange(begins[i] + 1, at[i] + 1)
        if place[i] == issued.blocked[i]:
            until = begins[i] + 1 + np.searchsorted(thread.times[inside], issued.end[i])
            inside = inside[(inside <= until) & (thread.times[inside] >= min(issued.soonest[i], thread.times[at[i]]))]
            at[i] = inside[(thread.times[inside] - thread.times[inside - 1]).argmax()]
        else:
            inside = inside[np.isin(inside, timeline.frames)]
            at[i] = inside[0] if len(inside) else at[i]
    return thread.vertices[at]
