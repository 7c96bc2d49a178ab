"""Delays of device work that starts late, for no recorded reason, while its device runs other work.

A device runs the work of several streams at once, as far as there is room. Work that was ready and did not start while
other streams were at work was held up by this work, or waited for it in a way that was not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from htagraph.core.arrays import Ints, Mask, looked_up
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, EdgeKind, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.construction.device_work import NEVER, WorkInOrder, devices_in_order
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["held_up"]


@dataclass(frozen=True)
class _Delays:
    """By how much work starts later because its device ran other work, one row each."""

    work: Ints
    """The work that starts late."""

    busy_ns: Ints
    """How long the device ran other work between the moment that the edges allow and the start."""

    cause: Ints
    """The other work that ends last; communication only where there is nothing else."""

    def by_work(self) -> _Delays:
        """Return the same delays in the order of the late work."""
        order = np.argsort(self.work)
        return _Delays(
            self.work[order],
            self.busy_ns[order],
            self.cause[order],
        )


def held_up(job: RecordedJob, edges: Edges) -> Edges:
    """Return the edges, with delays by other work of a device as time of this other work.

    A delay is the time in which the device was at work, out of the time by which a start comes later than all edges
    allow. It becomes part of the lag of the binding edge, whose owner is the other work: the start comes sooner if this
    becomes faster. Time in which the device ran nothing stays a gap.

    Args:
        job: the recorded job.
        edges: its edges, with lags that agree with the recorded times.

    Returns:
        As many edges, in the same order; no lag leads past the recorded start.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> starts = graph.select(kind=["computation", "communication", "memory"]).activities * 2
        >>> bool(graph.gap[starts].sum() < 0.02 * graph.gap.sum())
        True
    """
    allowed = _allowed(job, edges)
    is_work = of_kinds(job.activities.kind, DEVICE_WORK)
    delay = job.time[0::2] - allowed
    late = is_work & (allowed > NEVER)
    late &= delay > _usual_delays(job, edges, allowed)
    if not late.any():
        return edges
    delays = _all_delays(job, late, allowed)
    binding = _binding(job, edges, delays.work, allowed)
    target = edges.target[binding] >> 1
    lag = edges.lag.copy()
    lag[binding] += looked_up(delays.work, delays.busy_ns, target, 0)
    owner = edges.activity.copy()
    owner[binding] = looked_up(delays.work, delays.cause, target)
    return replace(edges, lag=lag, activity=owner)


def _allowed(job: RecordedJob, edges: Edges) -> Ints:
    """Return from when on each device activity could start.

    Args:
        job: the recorded job.
        edges: its edges.

    Returns:
        The latest moment that an edge allows, ns; `NEVER` where nothing precedes the start.
    """
    allowed = np.full(len(job.activities), NEVER)
    is_start = edges.target & 1 == 0
    is_start &= job.activities.on_device[edges.target >> 1]
    into = np.flatnonzero(is_start)
    moment = job.moment(edges.source[into])
    np.maximum.at(
        allowed,
        edges.target[into] >> 1,
        moment + edges.lag[into],
    )
    return allowed


def _usual_delays(job: RecordedJob, edges: Edges, allowed: Ints) -> Ints:
    """Return how much later than allowed each activity may start as a matter of course, ns.

    After the work before it on its stream, that is a few usual pauses of the stream.

    Args:
        job: the recorded job.
        edges: its edges; lags of streams are their usual pauses.
        allowed: from when on each activity could start.
    """
    is_order = edges.kind == EdgeKind.STREAM
    is_order &= edges.source & 1 == 1
    is_order &= edges.lag >= 0
    in_order = np.flatnonzero(is_order)
    target = edges.target[in_order] >> 1
    pause = edges.lag[in_order]
    moment = job.moment(edges.source[in_order])
    binds = moment + pause == allowed[target]
    usual = np.maximum(LIMITS.resolution_ns, pause[binds])
    delays = np.full(len(allowed), LIMITS.long_pause_ns)
    delays[target[binds]] = np.minimum(
        LIMITS.long_pause_ns,
        LIMITS.times_usual * usual,
    )
    return delays


def _all_delays(job: RecordedJob, late: Mask, allowed: Ints) -> _Delays:
    """Return the delays of late work on all devices, in the order of the work."""
    delays = []
    for device in devices_in_order(job):
        delayed = device.only(late[device.rows])
        delays.append(_on_device(job, device, delayed, allowed))
    return _Delays(
        np.concatenate([device.work for device in delays]),
        np.concatenate([device.busy_ns for device in delays]),
        np.concatenate([device.cause for device in delays]),
    ).by_work()


def _on_device(job: RecordedJob, device: WorkInOrder, delayed: WorkInOrder, allowed: Ints) -> _Delays:
    """Return the delays of late work on one device.

    Args:
        job: the recorded job.
        device: all work of the device.
        delayed: the late work.
        allowed: from when on each activity could start.
    """
    until = device.busy_before(delayed.start)
    since = device.busy_before(allowed[delayed.rows])
    busy_ns = until - since
    is_busy = busy_ns > 0
    delayed = delayed.only(is_busy)
    kind = job.activities.kind[device.rows]
    is_computation = kind != ActivityKind.COMMUNICATION
    computation, ends = device.only(is_computation).ends_last(delayed.start)
    any_work, _ = device.ends_last(delayed.start)
    runs_meanwhile = ends > allowed[delayed.rows]
    return _Delays(
        delayed.rows,
        busy_ns[is_busy],
        np.where(runs_meanwhile, computation, any_work),
    )


def _binding(job: RecordedJob, edges: Edges, work: Ints, allowed: Ints) -> Ints:
    """Return the edges to the starts of some work that allow this start last.

    Args:
        job: the recorded job.
        edges: its edges.
        work: the activities that start late.
        allowed: from when on each activity could start.
    """
    target = edges.target >> 1
    is_into = np.isin(target, work)
    is_into &= edges.target & 1 == 0
    into = np.flatnonzero(is_into)
    moment = job.moment(edges.source[into])
    binds = moment + edges.lag[into] == allowed[target[into]]
    return into[binds]
