"""Edges to device work that starts late for no recorded reason while its device runs other work.

A device runs the work of several streams at once, as far as there is room. Work that was ready and did not start while
other streams were at work was held up by them, or waited for them in a way that was not recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, looked_up
from htagraph.core.intervals import union
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, EdgeKind, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["held_up"]

_NEVER = np.iinfo(np.int64).min // 2
"""Before any recorded moment, ns; no threshold, and differences from it stay within int64."""


class _Delays(NamedTuple):
    """By how much work starts later because its device ran other work, one row each."""

    work: Ints
    """The work that starts late."""
    busy_ns: Ints
    """How long the device ran other work between the moment that the edges allow and the start."""
    by: Ints
    """The other work that ended, or ends, last; communication only where there is nothing else."""


def held_up(job: RecordedJob, edges: Edges) -> Edges:
    """Return the edges, with the time that other work of the device held up the start of work as this work's own.

    That is the time in which the device was at work, of the time for which a start comes later than all edges allow. It
    becomes part of the lag of the binding edge, and its owner is the other work: the start comes sooner if this becomes
    faster. Time in which the device ran nothing stays a gap.
    """
    acts = job.activities
    allowed = _allowed(job, edges)
    late = job.time[0::2] - allowed > _usual_delays(job, edges, allowed)
    late &= (allowed > _NEVER) & of_kinds(acts.kind, DEVICE_WORK)
    if not late.any():
        return edges
    parts = [_delays(job, rows, rows[late[rows]], allowed) for rows in _by_device(job)]
    delayed = np.concatenate([part.work for part in parts])
    order = np.argsort(delayed)
    busy = np.concatenate([part.busy_ns for part in parts])[order]
    by = np.concatenate([part.by for part in parts])[order]
    delayed = delayed[order]
    into = np.flatnonzero((edges.target & 1 == 0) & np.isin(edges.target >> 1, delayed))
    into = into[job.moment(edges.source[into]) + edges.lag[into] == allowed[edges.target[into] >> 1]]
    lag = edges.lag.copy()
    owner = edges.activity.copy()
    lag[into] += looked_up(delayed, busy, edges.target[into] >> 1, 0)
    owner[into] = looked_up(delayed, by, edges.target[into] >> 1, -1)
    return replace(edges, lag=lag, activity=owner)


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
    after_work = np.flatnonzero((edges.kind == EdgeKind.STREAM) & (edges.source & 1 == 1) & (edges.lag >= 0))
    target = edges.target[after_work] >> 1
    binds = job.moment(edges.source[after_work]) + edges.lag[after_work] == allowed[target]
    delays = np.full(len(allowed), LIMITS.long_pause_ns)
    pauses = LIMITS.times_usual * np.maximum(LIMITS.resolution_ns, edges.lag[after_work[binds]])
    delays[target[binds]] = np.minimum(LIMITS.long_pause_ns, pauses)
    return delays


def _by_device(job: RecordedJob) -> list[Ints]:
    """Return the kernels, copies and sets of each device, in the order of their starts."""
    acts = job.activities
    work = np.flatnonzero(of_kinds(acts.kind, DEVICE_WORK))
    devices = np.array([lane.device for lane in job.lanes], np.int64)[acts.lane[work]]
    place = acts.rank[work].astype(np.int64) << 32 | (devices + 1)
    order = np.lexsort((job.time[2 * work], place))
    return np.split(work[order], np.flatnonzero(np.diff(place[order])) + 1)


def _delays(job: RecordedJob, rows: Ints, late: Ints, allowed: Ints) -> _Delays:
    """Return the delays of late work on one device, given all of its work in the order of starts."""
    acts = job.activities
    busy = _busy_before(job, rows, job.time[2 * late]) - _busy_before(job, rows, allowed[late])
    delayed = late[busy > 0]
    busy = busy[busy > 0]
    by = _ends_last(job, rows, delayed)
    computes = rows[acts.kind[rows] != ActivityKind.COMMUNICATION]
    if len(computes):
        by_computation = _ends_last(job, computes, delayed)
        runs_meanwhile = (by_computation >= 0) & (job.time[2 * by_computation + 1] > allowed[delayed])
        by = np.where(runs_meanwhile, by_computation, by)
    return _Delays(delayed, busy, by)


def _busy_before(job: RecordedJob, rows: Ints, moments: Array) -> Ints:
    """Return for how long a device was at work before each moment, ns."""
    begin, end = union(job.time[2 * rows], job.time[2 * rows + 1])
    if not len(begin):
        return np.zeros(len(moments), np.int64)
    total = np.concatenate(([0], np.cumsum(end - begin)))
    place = np.searchsorted(begin, moments, side="right")
    over = np.maximum(0, end[np.maximum(place - 1, 0)] - moments)
    return np.asarray(total[place] - np.where(place > 0, over, 0))


def _ends_last(job: RecordedJob, rows: Ints, work: Ints) -> Ints:
    """Return which of the rows, ordered by start, ends last of those that started before some work; -1 for none."""
    end = job.time[2 * rows + 1]
    busy_until = np.maximum.accumulate(end)
    ends_last = np.maximum.accumulate(np.where(end == busy_until, np.arange(len(rows)), 0))
    place = np.searchsorted(job.time[2 * rows], job.time[2 * work]) - 1
    return np.where(place >= 0, rows[ends_last[np.maximum(place, 0)]], -1)
