"""STREAM: end of a kernel or copy → start of the next one on its stream. Lag: the device's pause between two.

The lag is negative where the next one starts shortly before that end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["stream"]

_BEFORE_ALL = np.iinfo(np.int64).min // 2
"""A moment before any recorded one, ns; no threshold, and differences from it stay within int64."""


class _Overlaps(NamedTuple):
    """Work that starts, or whose predecessor ends, while earlier work of its stream still runs; one row each.

    Places count within the stream.
    """

    place: Ints
    """The work that starts."""
    ended: Ints
    """The earlier work that had ended last before the start; -1 if none had."""
    ends_next: Ints
    """The earlier work that ends next after the start; -1 where work that starts later ends before it."""
    ends_last: Ints
    """The earlier work that ends last."""
    is_beside: Mask
    """Whether this one still runs at the start."""
    since: Ints
    """The latest moment at which earlier work started or ended, ns."""


def stream(job: RecordedJob) -> Edges:
    """Return an edge from the end of each kernel, copy or memset to the start of the next one on its stream.

    The lag is the median of the stream's short pauses before kernels that were already queued: the time the device
    needs from one to the next.

    Work may start while earlier work of the stream still runs. If that ends soon, the work waited for this end: the
    clock's grain, or the launch of a programmatic dependent, makes the start earlier by a bit, which is the (negative)
    lag. Soon means sooner than the time since anything else began or ended on the stream. Otherwise the two run side by
    side (branches of a CUDA graph), and the later one waits for the latest end before its start. If this was long ago,
    and so was its launch, only the running work can explain the start: the time until then is the running work's own.

    No work starts before the work that is ahead of it on the stream.
    """
    usual = _usual_pauses(job)
    acts = job.activities
    parts = [_of_stream(job, lane, usual[int(acts.lane[lane[0]])]) for lane in acts.by_stream()]
    nothing = np.zeros(0, np.int64)
    return Edges.concatenate([_edges(nothing, nothing, 0), *parts])


def _of_stream(job: RecordedJob, lane: Ints, usual: int) -> Edges:
    """Return the edges of one stream, given its work in the order of starts and its usual pause, ns."""
    acts = job.activities
    start = acts.start[lane]
    end = acts.end[lane]
    into_next = end[:-1] > start[1:]
    in_order = _edges(2 * lane[:-1] + ~into_next, 2 * lane[1:], np.where(into_next, 0, usual))
    over = _overlaps(start, end)
    if not len(over.place):
        return in_order
    begins = start[over.place]
    early = np.where(over.ends_next >= 0, end[over.ends_next] - begins, np.iinfo(np.int64).max)
    is_order = early <= begins - over.since
    has_ended = over.ended >= 0
    alone = (
        over.is_beside
        & ~is_order
        & (begins - over.since > LIMITS.times_usual * usual)
        & ~_just_launched(job, lane[over.place])
    )
    beside = lane[over.ends_last[alone]]
    until = lane[over.place[alone]]
    return Edges.concatenate(
        [
            in_order,
            _edges(2 * lane[over.ended[has_ended]] + 1, 2 * lane[over.place[has_ended]], 0),
            _edges(2 * lane[over.ends_next[is_order]] + 1, 2 * lane[over.place[is_order]], -early[is_order]),
            _edges(2 * beside, 2 * until, acts.start[until] - acts.start[beside], activity=beside),
        ]
    )


def _edges(source: Array, target: Array, lag: Array | int, *, activity: Array | int = -1) -> Edges:
    return Edges.of(source, target, lag, EdgeKind.STREAM, Provenance.ORDER, activity=activity)


def _overlaps(start: Ints, end: Ints) -> _Overlaps:
    """Return the overlaps of a stream, given all of its work in the order of starts."""
    busy_until = np.maximum.accumulate(end)
    place = np.flatnonzero(busy_until[:-1] > np.minimum(start[1:], end[:-1])) + 1
    begins = start[place]
    by_end = np.lexsort((-start, end))
    ends = end[by_end]
    ended = np.searchsorted(ends, begins, side="right") - 1
    # an activity of length 0 at that very moment also ends by then: only what started earlier precedes
    is_empty = start[by_end[ended]] == begins
    ended = np.where(is_empty, np.searchsorted(ends, begins) - 1, ended)
    ended = np.where(ended >= 0, by_end[ended], -1)
    ends_next = by_end[np.minimum(np.searchsorted(ends, begins, side="right"), len(by_end) - 1)]
    ends_next = np.where((ends_next < place) & (end[ends_next] > begins), ends_next, -1)
    ends_last = np.maximum.accumulate(np.where(end == busy_until, np.arange(len(end)), 0))[place - 1]
    return _Overlaps(
        place=place,
        ended=ended,
        ends_next=ends_next,
        ends_last=ends_last,
        is_beside=busy_until[place - 1] > begins,
        since=np.maximum(start[place - 1], np.where(ended >= 0, end[ended], _BEFORE_ALL)),
    )


def _just_launched(job: RecordedJob, work: Ints) -> Mask:
    """Return which work starts so soon after its launch that this explains the start."""
    acts = job.activities
    call = acts.cause[work]
    return np.asarray((call >= 0) & (acts.start[work] - acts.start[call] <= LIMITS.own_call_ns + LIMITS.launch_ns))


def _usual_pauses(job: RecordedJob) -> dict[int, int]:
    """Return the usual pause, ns, by stream.

    A stream with too few pauses gets the median of the other streams that compute: how soon a collective follows
    another says nothing of kernels.
    """
    acts = job.activities
    by_device: dict[tuple[int, int], list[Ints]] = {}
    for lane in acts.by_stream():
        stream_lane = job.lanes[int(acts.lane[lane[0]])]
        by_device.setdefault((stream_lane.rank, stream_lane.device), []).append(lane)
    by_stream: dict[int, Ints] = {}
    communicating: set[int] = set()
    for lanes in by_device.values():
        work = np.concatenate(lanes)
        work = work[np.argsort(acts.start[work], kind="stable")]
        for lane in lanes:
            stream_number = int(acts.lane[lane[0]])
            by_stream[stream_number] = _pauses(job, lane, work)
            if (acts.kind[lane] == ActivityKind.COMMUNICATION).mean() > LIMITS.most:
                communicating.add(stream_number)
    known = {lane: int(np.median(pauses)) for lane, pauses in by_stream.items() if len(pauses) >= LIMITS.few}
    computing = [pause for lane, pause in known.items() if lane not in communicating]
    others = int(np.median(computing)) if computing else LIMITS.pause_ns
    return {lane: known.get(lane, others) for lane in by_stream}


def _pauses(job: RecordedJob, lane: Ints, work: Ints) -> Ints:
    """Return the short pauses, ns, before kernels and copies of a stream that were already queued.

    `work` is all work of the device by start: a pause into which other work falls may be longer for this reason.
    """
    acts = job.activities
    begin = acts.end[lane[:-1]]
    end = acts.start[lane[1:]]
    call = acts.cause[lane[1:]]
    queued = (call >= 0) & (acts.start[call] + LIMITS.queued_ns < begin)
    first_inside = work[np.minimum(np.searchsorted(acts.start[work], begin), len(work) - 1)]
    is_filled = (acts.start[first_inside] >= begin) & (acts.end[first_inside] <= end) & (acts.start[first_inside] < end)
    pause = end - begin
    return np.asarray(pause[queued & ~is_filled & (pause >= 0) & (pause < LIMITS.long_pause_ns)])
