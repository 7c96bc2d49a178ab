"""First work of streams, and calls of the host, that waited for work begun before the recording.

A profiler that starts in the middle of a job does not record the work that is queued or running at that moment. The
first recorded work of a stream then starts when this earlier work ends, whatever the recorded host does. Each stream is
judged by itself: that another stream was free says nothing. A call that waits for the device returns when this earlier
work ends, even if the host launched nothing before the call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.errors import Issue
from htagraph.core.kinds import BLOCKING, LAUNCHES, ActivityKind, EdgeKind, Provenance, of_kinds
from htagraph.core.naming import is_memset_call, names_like, names_that
from htagraph.graph.activities import Edges
from htagraph.graph.construction.device_work import WorkInOrder, devices_in_order
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.measures.launch_calls import inside_captures
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["behind_earlier_work", "with_waits_for_earlier_work"]

_NEVER = np.iinfo(np.int64).min
_EVER = np.iinfo(np.int64).max
"""Before and after any recorded moment, ns; no thresholds."""
_DETAIL = "kernels were queued {:.3g} ms before they ran; the device was probably busy with earlier work"
"""A problem of a rank's file."""
_AWAITED = "calls waited {:.3g} ms for a device that ran nothing recorded; it was probably busy with earlier work"
"""The same problem, seen by the host."""


@dataclass(frozen=True)
class _Starts:
    """Starts of launched device work, one row each."""

    work: Ints
    """The device work."""

    call: Ints
    """The launch of the work."""

    ready: Ints
    """From when on nothing recorded holds the work up, ns: it was handed over, and its dependencies were over."""

    idle_ns: Ints
    """How long the device ran nothing recorded between `ready` and the start."""

    is_first: Mask
    """Whether the work is the first one recorded on its stream."""

    def only(self, chosen: Mask) -> _Starts:
        """Return a part of the rows."""
        return _Starts(
            self.work[chosen],
            self.call[chosen],
            self.ready[chosen],
            self.idle_ns[chosen],
            self.is_first[chosen],
        )


def behind_earlier_work(job: RecordedJob, edges: Edges, held: Ints) -> Edges:
    """Return an edge from the start of a rank's recording to the first work of each stream that earlier work held up.

    The first work of a stream waited for earlier work if the device ran nothing recorded for most of the wait, later
    work of the device never waited like this, and several pieces of work were queued on the stream by then, or the work
    is a copy, which loads no module, and not one that its call stages first. So did the first work of other streams
    that was launched meanwhile; if it started later than all of this work, it has an edge from the last of their
    starts.

    The edge lasts as long as the earlier work, whose end stays as recorded if the host changes.

    Args:
        job: the recorded job; `refused` gets an issue per rank that waited for more than a small part of its time.
        edges: the edges of all rules, with lags as observed.
        held: until when the edges hold up the start of each activity, launches left out, ns.

    Returns:
        EVENT_WAIT edges from a moment of the host, few and mostly none.
    """
    starts = _starts(job, edges, held)
    acts = job.activities
    start = job.moment(2 * starts.work)
    waited = start - starts.ready
    late = starts.is_first.copy()
    late &= starts.idle_ns > LIMITS.idle_start_ns
    late &= ~_recurs(job, starts)
    is_copy = acts.kind[starts.work] == ActivityKind.MEMORY
    is_copy &= ~_is_staged(job, starts)
    begun = job.moment(2 * starts.call)
    is_queued = _queued(job, starts) >= LIMITS.often
    is_sure = late & (is_copy | is_queued)
    is_sure &= starts.idle_ns > LIMITS.most * waited
    last = _last(job, starts, is_sure)
    until = np.where(last >= 0, job.moment(2 * last), _NEVER)
    waited = np.minimum(start, until) - starts.ready
    is_behind = late & (begun < until)
    is_behind &= starts.idle_ns > LIMITS.most * waited
    is_behind |= is_sure
    is_after = ~is_sure & (start >= until)
    after = np.where(is_after, last, -1)
    return _edges(job, starts.only(is_behind), after[is_behind])


def _is_staged(job: RecordedJob, starts: _Starts) -> Mask:
    """Return which starts may be late because the call stages pageable memory first.

    Memory of the host is no slower than the link, so that staging takes no longer than the copy.

    Args:
        job: the recorded job.
        starts: starts of device work.
    """
    acts = job.activities
    work = starts.work
    name = acts.name[work]
    is_pageable = names_like(job.naming.pageable, job.names, name)
    to_device = names_like(job.naming.to_device, job.names, name)
    is_short = starts.idle_ns <= acts.duration[work]
    return is_pageable & to_device & is_short


def _starts(job: RecordedJob, edges: Edges, held: Ints) -> _Starts:
    """Return the starts of all launched device work, by device."""
    acts = job.activities
    call_of = np.full(len(acts), -1)
    is_launch = of_kinds(edges.kind, LAUNCHES)
    call_of[edges.target[is_launch] >> 1] = edges.source[is_launch] >> 1
    streams = acts.by_stream()
    first = np.array([work[0] for work in streams], np.int64)
    is_first = marked(first, len(acts))
    rows = []
    idle = []
    ready = _ready(job, call_of, held)
    for device in devices_in_order(job):
        launched = device.only(call_of[device.rows] >= 0)
        since = np.minimum(ready[launched.rows], launched.start)
        waited = launched.start - since
        busy_until_start = device.busy_before(launched.start)
        busy_ns = busy_until_start - device.busy_before(since)
        rows.append(launched.rows)
        idle.append(waited - busy_ns)
    work = np.concatenate(rows)
    return _Starts(
        work,
        call_of[work],
        ready[work],
        np.concatenate(idle),
        is_first[work],
    )


def _ready(job: RecordedJob, call_of: Ints, held: Ints) -> Ints:
    """Return from when on nothing recorded holds up each activity, ns.

    A call that returns after its work began hands the work over at once if it is a copy that waits for its stream;
    another call may have taken that long to hand it over.
    """
    acts = job.activities
    work = np.flatnonzero(call_of >= 0)
    call = call_of[work]
    start = job.moment(2 * work)
    begun = job.moment(2 * call)
    returned = job.moment(2 * call + 1)
    is_copy = acts.kind[work] == ActivityKind.MEMORY
    is_blocked = is_copy & (returned >= start)
    returned = np.minimum(returned, start)
    handed_over = np.where(is_blocked, begun, returned)
    ready = np.full(len(acts), _EVER)
    ready[work] = np.maximum(held[work], handed_over)
    return ready


def _queued(job: RecordedJob, starts: _Starts) -> Ints:
    """Return how many pieces of work had been launched on the stream of each work when its first work started."""
    lane = job.activities.lane[starts.work]
    by_lane = np.bincount(lane[_is_early(job, starts)], minlength=len(job.lanes))
    return by_lane[lane]


def _is_early(job: RecordedJob, starts: _Starts) -> Mask:
    """Return which work had been launched when the first work of its stream started."""
    acts = job.activities
    begins = np.zeros(len(job.lanes), np.int64)
    first = starts.work[starts.is_first]
    begins[acts.lane[first]] = acts.start[first]
    lane = acts.lane[starts.work]
    return np.asarray(acts.start[starts.call] <= begins[lane])


def _recurs(job: RecordedJob, starts: _Starts) -> Mask:
    """Return which starts are about as late as several starts of the rank that no earlier work can have held up.

    These are starts of work that was launched after the first work of its stream had started.
    """
    acts = job.activities
    later = starts.only(~_is_early(job, starts))
    rank = acts.rank[later.work]
    order = np.lexsort((-later.idle_ns, rank))
    ranks = rank[order]
    first_of_rank = np.searchsorted(ranks, ranks)
    place = np.arange(len(order)) - first_of_rank
    several = order[place == LIMITS.often - 1]
    usual = _by_rank(job, 0)
    usual[rank[several]] = later.idle_ns[several]
    own_rank = acts.rank[starts.work]
    return np.asarray(LIMITS.times_usual * usual[own_rank] >= starts.idle_ns)


def _by_rank(job: RecordedJob, value: int) -> Ints:
    """Return one value for each rank number up to the largest one."""
    count = max(job.traces, default=0) + 1
    return np.full(count, value)


def _last(job: RecordedJob, starts: _Starts, is_sure: Mask) -> Ints:
    """Return the sure work that started last on the rank of each start, -1 for none."""
    acts = job.activities
    last = _by_rank(job, -1)
    sure = starts.work[is_sure]
    in_order = sure[np.argsort(job.moment(2 * sure), kind="stable")]
    last[acts.rank[in_order]] = in_order
    return last[acts.rank[starts.work]]


def _edges(job: RecordedJob, behind: _Starts, after: Ints) -> Edges:
    """Return the edges to starts that waited for earlier work, and report them.

    Args:
        job: the recorded job.
        behind: the starts.
        after: for each start, the work on another stream whose start shows that the earlier work was over; -1 if the
            start itself shows it.
    """
    acts = job.activities
    rank = acts.rank[behind.work]
    target = 2 * behind.work
    until = np.where(after >= 0, job.moment(2 * after), job.moment(target))
    source = np.zeros(len(rank), np.int64)
    issues: list[Issue] = []
    for number in np.unique(rank).tolist():
        rows = np.flatnonzero(rank == number)
        source[rows] = 2 * _first(job, number)
        waited = until[rows] - behind.ready[rows]
        issues += _reported(job, number, int(waited.max()), _DETAIL)
    job.refused["latency"] = tuple(issues)
    source = np.where(after >= 0, 2 * after, source)
    lasts = until - job.moment(source)
    is_wait = (lasts > 0) | (after >= 0)
    return Edges.of(
        source[is_wait],
        target[is_wait],
        lasts[is_wait],
        EdgeKind.EVENT_WAIT,
        Provenance.INFERRED,
        confidence=Confidence.LIKELY,
    )


def _first(job: RecordedJob, rank: int) -> int:
    """Return the activity that begins the recording of a rank."""
    acts = job.activities
    of_rank = acts.of_rank(rank)
    return of_rank.start + int(acts.start[of_rank].argmin())


def _reported(job: RecordedJob, rank: int, longest_ns: int, words: str) -> list[Issue]:
    """Return that a rank waited for earlier work; nothing if that is a small part of the rank's time."""
    acts = job.activities
    of_rank = acts.of_rank(rank)
    begin = acts.start[of_rank].min()
    end = acts.end[of_rank].max()
    if longest_ns <= LIMITS.small * (end - begin):
        return []
    path = str(job.traces[rank].path)
    detail = words.format(longest_ns / 1e6)
    return [Issue(path, "queued_behind_earlier_work", detail, 1, rank)]


def with_waits_for_earlier_work(job: RecordedJob, edges: Edges, queued: Edges) -> Edges:
    """Return the edges of a job, with the waits of device work and of calls for work begun before the recording.

    A wait from the start of a launch to the start of its work, or from the start of a call to its end, replaces the
    edge of the launch or of the call.

    Args:
        job: the recorded job; `refused` gets an issue per rank whose calls waited for more than a small part of its
            time, and whose work did not.
        edges: the other edges, with the lags of launches settled.
        queued: the waits of device work, from `behind_earlier_work`.
    """
    call = _waiting_calls(job, edges)
    if not len(call) and not len(queued):
        return edges
    _report_calls(job, call)
    added = Edges.concatenate([queued, _edges_into_calls(job, call)])
    vertices = 2 * len(job.activities)
    is_end = marked(2 * call + 1, vertices)[edges.target]
    is_body = (edges.kind == EdgeKind.BODY) & is_end
    shortened = np.minimum(edges.lag, LIMITS.own_call_ns)
    lag = np.where(is_body, shortened, edges.lag)
    settled = replace(edges, lag=lag)
    is_replaced = np.isin(_pairs(settled, vertices), _pairs(added, vertices))
    kept = settled.take(~is_replaced)
    return Edges.concatenate([kept, added])


def _pairs(edges: Edges, vertices: int) -> Ints:
    """Return one number for the source and the target of each edge.

    Args:
        edges: the edges.
        vertices: the number of vertices.
    """
    source = edges.source.astype(np.int64)
    return source * vertices + edges.target


def _edges_into_calls(job: RecordedJob, call: Ints) -> Edges:
    """Return an edge from the start of the rank's recording to the end of each call that waited for earlier work."""
    rank = job.activities.rank[call]
    source = np.zeros(len(call), np.int64)
    for number in np.unique(rank).tolist():
        source[rank == number] = 2 * _first(job, number)
    target = 2 * call + 1
    return Edges.of(
        source,
        target,
        job.moment(target) - job.moment(source),
        EdgeKind.EVENT_WAIT,
        Provenance.INFERRED,
        confidence=Confidence.LIKELY,
    )


def _waiting_calls(job: RecordedJob, edges: Edges) -> Ints:
    """Return the calls that waited for work begun before the recording.

    A call counts if the call asks to wait for the device, takes long, and no recorded work is known to end the wait.
    """
    acts = job.activities
    is_long = acts.duration > LIMITS.long_call_ns
    is_long &= acts.kind == ActivityKind.SYNC
    is_long &= ~_ended_by_work(job, edges)
    call = np.flatnonzero(is_long)
    if not len(call):
        return call
    devices: dict[int, list[WorkInOrder]] = {}
    for device in devices_in_order(job):
        if len(device.rows):
            rank = int(acts.rank[device.rows[0]])
            devices.setdefault(rank, []).append(device)
    calls_of_ranks = [call[:0]]
    for rank, of_rank in sorted(devices.items()):
        asked = call[acts.rank[call] == rank]
        waited = _waited_beside(
            job,
            asked,
            of_rank,
            rank,
        )
        calls_of_ranks.append(asked[waited])
    return np.concatenate(calls_of_ranks)


def _waited_beside(
    job: RecordedJob,
    call: Ints,
    devices: list[WorkInOrder],
    rank: int,
) -> Mask:
    """Return which calls of a rank waited for work begun before the recording.

    Next to nothing recorded runs on any device from the first moment of the rank to the end of the call, and nothing on
    the busiest stream of a device before the call: there, earlier work would be over. The recording lacks the awaited
    work, too, where several calls after the first recorded work waited about as long beside devices that ran nothing
    recorded, and where a launch before has no work in the file.

    Args:
        job: the recorded job.
        call: long calls of the rank.
        devices: the recorded work of the devices of the rank.
        rank: the rank.
    """
    begun = job.moment(2 * call)
    returned = job.moment(2 * call + 1)
    since = job.moment(np.array([2 * _first(job, rank)]))
    until_begun = np.zeros(len(call), np.int64)
    until_returned = np.zeros(len(call), np.int64)
    for device in devices:
        until_begun += device.busy_before(begun)
        until_returned += device.busy_before(returned)
    waited = returned - begun
    beside = until_returned - until_begun
    is_early = until_returned <= LIMITS.small * (returned - since)
    is_early &= beside <= LIMITS.small * waited
    is_early &= returned <= _first_lost(job, rank)
    busiest_begins = [_busiest_begins(job, device) for device in devices]
    is_early &= begun < max(busiest_begins)
    first_work = min(int(device.start[0]) for device in devices)
    later = np.sort((waited - beside)[begun > first_work])
    usual = later[-LIMITS.often] if len(later) >= LIMITS.often else 0
    is_early &= waited > LIMITS.times_usual * usual
    return is_early


def _busiest_begins(job: RecordedJob, device: WorkInOrder) -> int:
    """Return when the first recorded work begins of the stream that works longest on a device, ns.

    Args:
        job: the recorded job.
        device: the work of the device, some.
    """
    lane = job.activities.lane[device.rows]
    busy_ns = np.bincount(lane, device.end - device.start)
    of_busiest = lane == busy_ns.argmax()
    return int(device.start[of_busiest][0])


def _ended_by_work(job: RecordedJob, edges: Edges) -> Mask:
    """Return which activities are calls that waited for recorded work.

    Args:
        job: the recorded job.
        edges: the edges of all rules. The source of a wait is the work that was waited for.
    """
    is_wait = of_kinds(edges.kind, BLOCKING)
    source = edges.source[is_wait]
    call = edges.target[is_wait] >> 1
    waited = job.moment(source) > job.moment(2 * call)
    return marked(call[waited], len(job.activities))


def _first_lost(job: RecordedJob, rank: int) -> int:
    """Return when the first launch of a rank begins whose work is not in the file, ns; `_EVER` without such a launch.

    A memset of no bytes has no work, nor has a launch inside the capture of a CUDA graph.
    """
    acts = job.activities
    of_rank = acts.of_rank(rank)
    calls = of_rank.start + np.flatnonzero(acts.kind[of_rank] == ActivityKind.LAUNCH)
    has_work = marked(acts.cause[acts.cause >= 0], len(acts))
    is_memset = names_that(is_memset_call, job.names)[acts.name[calls]]
    is_captured = inside_captures(acts, job.names)[calls]
    lost = calls[~has_work[calls] & ~is_memset & ~is_captured]
    return int(job.moment(2 * lost).min(initial=_EVER))


def _report_calls(job: RecordedJob, call: Ints) -> None:
    """Report the ranks whose calls waited for earlier work, and of which no device work is known to have waited."""
    acts = job.activities
    reported = {issue.rank for issue in job.refused.get("latency", ())}
    issues: list[Issue] = []
    for rank in np.unique(acts.rank[call]).tolist():
        longest = acts.duration[call[acts.rank[call] == rank]].max()
        if rank not in reported:
            issues += _reported(job, rank, int(longest), _AWAITED)
    job.refused["earlier_work"] = tuple(issues)
