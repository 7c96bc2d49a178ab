"""Edges to device work that starts late, for no recorded reason, while its device runs other work.

A device runs the work of several streams at once, as far as there is room. Work that was ready and did not start while
other streams were at work was held up by them, or waited for them in a way that was not recorded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, EdgeKind, Provenance, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["held_up"]

_NEVER = np.iinfo(np.int64).min // 2
"""Before any recorded moment, ns; no threshold, and differences from it stay within int64."""
_FOREVER = np.iinfo(np.int64).max // 2
"""Longer than any recorded time, ns; no threshold."""


class _Near(NamedTuple):
    """The ends of a device's work around some moments; a distance is `_FOREVER` where there is no such end."""

    before: Ints
    """The work that ended last."""
    since_ns: Ints
    """How long ago that was."""
    after: Ints
    """The work that is running and ends next, collectives left out: their end depends on other ranks."""
    until_ns: Ints
    """How long until then."""


def held_up(job: RecordedJob, edges: Edges) -> Edges:
    """Return an edge to each start of device work that comes late while other streams of its device are at work.

    Work that starts when other work ends, give or take a tenth of the time for which it was ready, waited for that end:
    it starts a bit earlier where the last blocks of a kernel leave room. Where no end is near, the time until the start
    is that of the work that runs meanwhile, and where none runs any more, the latest end is the last that can have been
    waited for.

    These dependencies are little more than guesses, so predictions are made without them too.
    """
    acts = job.activities
    work = np.flatnonzero(of_kinds(acts.kind, DEVICE_WORK))
    if not len(work):
        return edges.take(slice(0, 0))
    allowed = _allowed(job, edges)
    late = acts.start - allowed > _usual_delays(job, edges, allowed)
    late &= marked(work, len(acts)) & (allowed > _NEVER)
    device = np.array([lane.device for lane in job.lanes], np.int64)[acts.lane[work]]
    place = acts.rank[work].astype(np.int64) << 32 | (device + 1)
    work = work[np.lexsort((acts.start[work], place))]
    places = np.sort(place)
    of_devices = np.split(work, np.flatnonzero(np.diff(places)) + 1)
    return Edges.concatenate([edges.take(slice(0, 0)), *(_on_device(job, rows, late, allowed) for rows in of_devices)])


def _allowed(job: RecordedJob, edges: Edges) -> Ints:
    """Return the moment from which on each device activity could start, ns; `_NEVER` where nothing precedes it."""
    allowed = np.full(len(job.activities), _NEVER)
    into = np.flatnonzero((edges.target & 1 == 0) & job.activities.on_device[edges.target >> 1])
    np.maximum.at(allowed, edges.target[into] >> 1, job.moment(edges.source[into]) + edges.lag[into])
    return allowed


def _usual_delays(job: RecordedJob, edges: Edges, allowed: Ints) -> Ints:
    """Return how much later than allowed each activity may start as a matter of course, ns.

    After the work before it on its stream, that is a few usual pauses of the stream.
    """
    after_work = np.flatnonzero((edges.kind == EdgeKind.STREAM) & (edges.lag > 0) & (edges.activity < 0))
    target = edges.target[after_work] >> 1
    binds = job.moment(edges.source[after_work]) + edges.lag[after_work] == allowed[target]
    delays = np.full(len(allowed), LIMITS.long_pause_ns)
    pauses = LIMITS.times_usual * edges.lag[after_work[binds]]
    delays[target[binds]] = np.minimum(LIMITS.long_pause_ns, pauses)
    return delays


def _on_device(job: RecordedJob, rows: Ints, late: Mask, allowed: Ints) -> Edges:
    """Return the edges on one device, given its work in the order of starts."""
    acts = job.activities
    targets = rows[late[rows]]
    begins = acts.start[targets]
    ready = begins - allowed[targets]
    near = _near(job, rows, begins)
    window = ready // LIMITS.times_window
    follows = (near.since_ns <= window) | (near.until_ns <= window)
    is_after = follows & (near.until_ns <= near.since_ns)
    running, is_running = _running(job, rows, begins)
    runs_on = ~follows & is_running
    ended = ~is_after & ~runs_on & (near.since_ns < ready)
    return Edges.concatenate(
        [
            _waits(2 * near.after[is_after] + 1, 2 * targets[is_after], -near.until_ns[is_after]),
            _waits(2 * near.before[ended] + 1, 2 * targets[ended], np.where(follows, near.since_ns, 0)[ended]),
            _waits(
                2 * running[runs_on],
                2 * targets[runs_on],
                (begins - acts.start[running])[runs_on],
                activity=running[runs_on],
            ),
        ]
    )


def _near(job: RecordedJob, rows: Ints, begins: Ints) -> _Near:
    """Return the ends around moments at which work starts, given the work of a device."""
    acts = job.activities
    by_end = rows[np.argsort(acts.end[rows], kind="stable")]
    ends = acts.end[by_end]
    later = np.searchsorted(ends, begins, side="right")
    before = by_end[np.maximum(later - 1, 0)]
    after = np.full(len(begins), -1)
    until = np.full(len(begins), _FOREVER)
    for step in range(LIMITS.nearest_ends):
        candidate = by_end[np.minimum(later + step, len(by_end) - 1)]
        fits = (after < 0) & (acts.start[candidate] < begins) & (acts.end[candidate] > begins)
        fits &= acts.kind[candidate] != ActivityKind.COMMUNICATION
        after = np.where(fits, candidate, after)
        until = np.where(fits, acts.end[candidate] - begins, until)
    has_ended = (later > 0) & (acts.start[before] < begins)
    return _Near(before, np.where(has_ended, begins - acts.end[before], _FOREVER), after, until)


def _running(job: RecordedJob, rows: Ints, begins: Ints) -> tuple[Ints, Mask]:
    """Return (the work that started before each moment and ends last, whether it still runs then)."""
    acts = job.activities
    end = acts.end[rows]
    busy_until = np.maximum.accumulate(end)
    ends_last = np.maximum.accumulate(np.where(end == busy_until, np.arange(len(rows)), 0))
    place = np.searchsorted(acts.start[rows], begins) - 1
    last = rows[ends_last[np.maximum(place, 0)]]
    return last, (place >= 0) & (acts.end[last] > begins)


def _waits(source: Array, target: Array, lag: Array, *, activity: Array | int = -1) -> Edges:
    return Edges.of(
        source,
        target,
        lag,
        EdgeKind.EVENT_WAIT,
        Provenance.INFERRED,
        activity=activity,
        confidence=Confidence.POSSIBLE,
    )
