"""Launch latency: the time from a launch to the start of its work, without the time that the work waited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import EdgeKind, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.tolerances import LIMITS

__all__ = ["latency"]

_NOT_BEFORE_WORK = (EdgeKind.LAUNCH, EdgeKind.GRAPH, EdgeKind.HOST_ORDER, EdgeKind.BODY)
"""Kinds of edges that are launches, or never lead to the start of device work."""


def latency(job: Job, edges: Edges) -> Edges:
    """Return the edges, with the lags of LAUNCH and GRAPH edges limited to the launch latency.

    What comes on top is waiting: for the stream, for an event, or for something that no edge describes.
    """
    held = _held_until(job, edges)
    return _of_graphs(job, _of_calls(job, edges, held), held)


def _of_graphs(job: Job, edges: Edges, held: npt.NDArray[np.int64]) -> Edges:
    """Return the edges, with the lag of each GRAPH edge limited to the least latency of the rank's graphs of that size.

    The latency grows with the size. Only launches count whose work waited for nothing else. Without any, or if even
    those took much longer, the work can start once the call has returned and an ordinary launch latency has passed: by
    then all of it was handed over.
    """
    rows = np.flatnonzero((edges.kind == EdgeKind.GRAPH) & (edges.lag > 0))
    if not len(rows):
        return edges
    acts, call = job.activities, edges.source[rows] // 2
    size = np.bincount(edges.source[edges.kind == EdgeKind.GRAPH] // 2, minlength=len(acts))
    _, member = np.unique(acts.rank[call].astype(np.int64) << 32 | size[call], return_inverse=True)
    seen = edges.lag[rows]
    free = _met_idle(job, edges, rows, held)
    least, handed_over = np.full((2, len(rows)), np.iinfo(np.int64).max // LIMITS.times_usual)
    np.minimum.at(least, member.ravel()[free], seen[free])
    np.minimum.at(handed_over, member.ravel(), acts.duration[call] + LIMITS.launch_ns)
    usual = np.where(least > LIMITS.times_usual * handed_over, handed_over, least)
    lag = edges.lag.copy()
    lag[rows] = np.minimum(seen, usual[member.ravel()])
    return replace(edges, lag=lag)


def _of_calls(job: Job, edges: Edges, held: npt.NDArray[np.int64]) -> Edges:
    """Return the edges, with the lag of each LAUNCH edge limited to the usual latency of the rank's calls of that name.

    The usual latency is the median over kernels and copies that waited for nothing else: everything that they depend on
    had ended when the call began. (The minimum would be a bound, but it predicts too early a start for queued work.)
    Calls that took long themselves, as the first one of a kernel that has to be loaded, say nothing of it.

    Work that waited for nothing else and started before such a call returned was handed over that late: the lag is the
    call's own time, all of it.
    """
    rows = np.flatnonzero(edges.kind == EdgeKind.LAUNCH)
    if not len(rows):
        return edges
    acts = job.activities
    call = edges.source[rows] // 2
    seen, free = edges.lag[rows], _met_idle(job, edges, rows, held) & (acts.duration[call] <= LIMITS.idle_start_ns)
    rank = acts.rank[call].astype(np.int64)
    of_rank = _medians(rank, seen, free, np.full(len(rows), LIMITS.launch_ns))
    of_class = _medians(rank << 32 | acts.name[call], seen, free, of_rank)
    usual = np.maximum(0, np.where(of_class > LIMITS.times_usual * of_rank, of_rank, of_class))
    late = _handed_over_late(job, edges.take(rows), held, LIMITS.times_usual * usual)
    lag, owner = edges.lag.copy(), edges.activity.copy()
    lag[rows] = np.where(late, seen, np.minimum(seen, usual))
    owner[rows[late]] = call[late]
    return replace(edges, lag=lag, activity=owner)


def _handed_over_late(
    job: Job, launches: Edges, held: npt.NDArray[np.int64], usual: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return for which edges, from launches to work, the call took so long that it alone made the work wait.

    Args:
        job: the job.
        launches: the edges.
        held: result of `_held_until`.
        usual: of each edge: what may pass from the call, or from anything else that the work waited for, ns.
    """
    starts = job.moment(launches.target)
    before_return = starts <= job.moment(launches.source + 1)
    free = np.maximum(held[launches.target // 2], job.moment(launches.source))
    return np.asarray(before_return & (starts - free > usual))


def _met_idle(
    job: Job, edges: Edges, rows: npt.NDArray[np.int64], held: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return for which edges, from launches to work, the work waited for nothing else.

    All that it depends on had happened when the call began, and it started soon after the call returned.
    """
    call, work = edges.source[rows] // 2, edges.target[rows] // 2
    soon = job.moment(2 * work) - job.moment(2 * call + 1) <= LIMITS.idle_start_ns
    return np.asarray(soon & (held[work] <= job.moment(2 * call)))


def _held_until(job: Job, edges: Edges) -> npt.NDArray[np.int64]:
    """Return for each activity when everything that its start depends on had happened, not counting its launch."""
    rows = np.flatnonzero(~of_kinds(edges.kind, _NOT_BEFORE_WORK))
    target = edges.target[rows]
    into = (target & 1 == 0) & job.activities.on_device[target >> 1]
    held = np.full(len(job.activities), np.iinfo(np.int64).min)
    np.maximum.at(held, target[into] >> 1, job.moment(edges.source[rows[into]]))
    return held


def _medians(
    group: npt.NDArray[np.int64], value: npt.NDArray[np.int64], use: npt.NDArray[np.bool_],
    otherwise: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return for each row the median of its group's values in use; `otherwise` for a group without any."""
    groups, member = np.unique(group, return_inverse=True)
    member = member.ravel()
    rows = np.flatnonzero(use)
    rows = rows[np.lexsort((value[rows], member[rows]))]
    first = np.searchsorted(member[rows], np.arange(len(groups) + 1))
    some = first[1:] > first[:-1]
    middle = np.zeros(len(groups), np.int64)
    middle[some] = value[rows][((first[1:] + first[:-1]) // 2)[some]]
    return np.where(some[member], middle[member], otherwise)
