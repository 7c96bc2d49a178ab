"""First work of streams that waited for work begun before the recording.

A profiler that starts in the middle of a job does not record the work that is queued or running at that moment. The
first recorded work of a stream then starts when this earlier work ends, whatever the recorded host does. Each stream is
judged by itself: that another stream was free says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.errors import Issue
from htagraph.core.kinds import LAUNCHES, ActivityKind, EdgeKind, Provenance, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.construction.device_work import devices_in_order
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["behind_earlier_work"]

_NEVER = np.iinfo(np.int64).min
_EVER = np.iinfo(np.int64).max
"""Before and after any recorded moment, ns; no thresholds."""
_DETAIL = "kernels were queued {:.3g} ms before they ran; the device was probably busy with earlier work"
"""A problem of a rank's file."""


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
    work of the device never waited like this, and several pieces of work were queued on the stream by then, or the call
    itself waited, and is a copy, which loads no module. So did the first work of other streams that was launched
    meanwhile; if it started later than all such work, it has an edge from the last of their starts.

    The edge lasts as long as the earlier work, whose end so stays where it is, whatever becomes of the host.

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
    begun = job.moment(2 * starts.call)
    returned = job.moment(2 * starts.call + 1)
    is_blocked = is_copy & (returned >= start)
    is_queued = _queued(job, starts) >= LIMITS.often
    is_sure = late & (is_blocked | is_queued)
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
        of_rank = acts.of_rank(number)
        rows = np.flatnonzero(rank == number)
        begin = of_rank.start + int(acts.start[of_rank].argmin())
        # a launch that begins the recording has an edge of its own from there: the wait begins when it returns
        is_same = behind.call[rows] == begin
        source[rows] = 2 * begin + is_same
        waited = until[rows] - behind.ready[rows]
        issues += _reported(job, number, int(waited.max()))
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


def _reported(job: RecordedJob, rank: int, longest_ns: int) -> list[Issue]:
    """Return that work of a rank waited for earlier work; nothing if that is a small part of the rank's time."""
    acts = job.activities
    of_rank = acts.of_rank(rank)
    begin = acts.start[of_rank].min()
    end = acts.end[of_rank].max()
    if longest_ns <= LIMITS.small * (end - begin):
        return []
    path = str(job.traces[rank].path)
    detail = _DETAIL.format(longest_ns / 1e6)
    return [Issue(path, "queued_behind_earlier_work", detail, 1, rank)]
