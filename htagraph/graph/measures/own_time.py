"""`graph.own_time`, the time of each activity without what it encloses, and when each rank is busy by kind of work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Mask, inverse_of, occurring
from htagraph.core.intervals import Intervals, union
from htagraph.core.kinds import BETWEEN, DEVICE, OPERATORS, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.core.naming import is_asking, is_taking, names_that
from htagraph.graph.activities import CUT, Activities, Edges, blocked_since

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "Work",
    "bound_times",
    "devices_of",
    "only_waiting",
    "own_time_of",
    "timed_work",
    "untraced_edges",
    "upper_bounds",
    "work_of",
    "work_times",
    "works_of",
]


def own_time_of(acts: Activities, edges: Edges, time: Array) -> npt.NDArray[np.int64]:
    """Return what `graph.own_time` is: the time on the edges that run inside each activity, ns."""
    is_own = of_kinds(edges.kind, (EdgeKind.BODY, EdgeKind.DATALOADER)) & (edges.activity >= 0)
    own = np.flatnonzero(is_own)
    total = np.zeros(len(acts), np.int64)
    np.add.at(total, edges.activity[own], time[edges.target[own]] - time[edges.source[own]])
    return total


def only_waiting(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which activities are Python frames that wait for another thread or process, or are inside such a frame."""
    asks = names_that(lambda name: is_asking(name) or is_taking(name), graph.names)[graph.activities.name]
    return asks | graph.tree.inside(asks) if asks.any() else asks


def timed_work(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (the kernels and copies of all ranks, their durations in ns).

    A rank without device work (CPU training) has its operators by own time, and the collectives on its threads.
    """
    acts = graph.activities
    with_device = occurring(acts.rank[acts.on_device])
    host = of_kinds(acts.kind, OPERATORS) & ~np.isin(acts.rank, with_device)
    rows = np.flatnonzero(acts.on_device | host)
    talks = host[rows] & (acts.kind[rows] == ActivityKind.HOST_COMMUNICATION)
    took = np.where(host[rows] & ~talks, graph.own_time[rows], acts.duration[rows])
    took[talks] = acts.end[rows[talks]] - blocked_since(acts, rows[talks])
    return rows, took


def upper_bounds(graph: DependencyGraph) -> Mask:
    """Return which activities have a duration that was cut at the next start, and is at most as long as it says.

    Example:
        >>> import htagraph as hg
        >>> bool(upper_bounds(hg.load("data/demo")).any())
        False
    """
    acts = graph.activities
    return acts.args[CUT].dense(len(acts)) > 0 if CUT in acts.args else np.zeros(len(acts), np.bool_)


def bound_times(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the duration of each activity whose duration was cut at the next start, and 0 for every other one, ns.

    Example:
        >>> import htagraph as hg
        >>> int(bound_times(hg.load("data/demo")).sum())
        0
    """
    return np.where(upper_bounds(graph), graph.activities.duration, 0).astype(np.int64)


def work_times(
    graph: DependencyGraph, ranks: Array, *, device: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return (the kernels or operators of some ranks, the place of each one's rank in `ranks`, their times in ns).

    `ranks` are positions in `graph.ranks`. With `device` they are kernels and their durations, else operators and their
    own times.
    """
    acts = graph.activities
    place = inverse_of(np.array(graph.ranks)[ranks], int(max(graph.ranks)) + 2)
    kind = ActivityKind.COMPUTATION if device else ActivityKind.OP
    rows = np.flatnonzero((acts.kind == kind) & (place[acts.rank] >= 0))
    time = (acts.duration if device else graph.own_time)[rows].astype(np.float64)
    return rows, place[acts.rank[rows]], time


def untraced_edges(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the edges between activities of a thread behind which it spends time that no event covers."""
    edges = graph.edges
    between = np.flatnonzero(of_kinds(edges.kind, BETWEEN) & (graph.gap_kind[edges.target] == GapKind.HOST_UNTRACED))
    return between[graph.binding[edges.target[between]] == between]


@dataclass(frozen=True)
class Work:
    """When one rank is busy, by kind of work, and the window from its first to its last work."""

    executor: str
    """``"device"``, ``"device 1"`` where this is one of several, or ``"host"`` for a rank without device work, whose
    operators are its computation.

    What such a rank sends or receives beside other work of the thread counts while the thread does nothing but wait.
    """
    by_kind: dict[ActivityKind, Intervals]
    """Keys COMPUTATION, COMMUNICATION, MEMORY, DEVICE_OTHER; normal interval sets, ns."""
    start: int
    """Start of the first work, ns."""
    end: int
    """End of the last work, ns."""
    beside: Intervals
    """When threads ran other work beside what they sent or received and waited for later; a normal interval set, ns."""


def devices_of(graph: DependencyGraph, rank: int) -> list[int]:
    """Return the devices on which a rank ran anything, by number, ascending.

    Example:
        >>> import htagraph as hg
        >>> devices_of(hg.load("data/demo"), 2)
        [2]
    """
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    lanes = np.unique(acts.lane[of_rank][acts.on_device[of_rank]])
    return sorted({graph.lanes[lane].device for lane in lanes.tolist()})


def work_of(graph: DependencyGraph, rank: int) -> Work:
    """Return the work of a rank: on its device streams, or on its threads if it uses no device."""
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    kinds = acts.kind[of_rank]
    if acts.on_device[of_rank].any():
        work = of_rank.start + np.flatnonzero(acts.on_device[of_rank])
        return _work("device", graph, _by_kind(acts, work))
    talks = of_rank.start + np.flatnonzero(kinds == ActivityKind.HOST_COMMUNICATION)
    parent = acts.parent[of_rank]
    inside = of_kinds(np.where(parent >= 0, acts.kind[parent], -1), OPERATORS)
    ops = of_rank.start + np.flatnonzero((kinds == ActivityKind.OP) & ~inside)  # directly in a region or a thread
    rows = dict.fromkeys(DEVICE, np.zeros(0, np.int64))
    rows |= {ActivityKind.COMPUTATION: ops, ActivityKind.COMMUNICATION: talks}
    work = _work("host", graph, rows)
    since = blocked_since(acts, talks)
    waited = union(since, acts.end[talks])
    beside = union(acts.start[talks], since)
    return replace(work, by_kind=work.by_kind | {ActivityKind.COMMUNICATION: waited}, beside=beside)


def works_of(graph: DependencyGraph, rank: int, *, apart: bool) -> list[Work]:
    """Return the work of a rank, or of each of its devices.

    Args:
        graph: the job.
        rank: the rank.
        apart: whether several devices of the rank count one by one.

    Example:
        >>> import htagraph as hg
        >>> [work.executor for work in works_of(hg.load("data/demo"), 2, apart=True)]
        ['device']
    """
    devices = devices_of(graph, rank)
    if not apart or len(devices) < 2:
        return [work_of(graph, rank)]
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    work = of_rank.start + np.flatnonzero(acts.on_device[of_rank])
    device_of_lane = np.array([lane.device for lane in graph.lanes], np.int64)
    device = device_of_lane[acts.lane[work]]
    by_device = np.argsort(device, kind="stable")
    bounds = np.searchsorted(device[by_device], devices)
    rows_of_devices = np.split(work[by_device], bounds[1:])
    return [
        _work(f"device {number}", graph, _by_kind(acts, rows))
        for number, rows in zip(devices, rows_of_devices, strict=True)
    ]


def _by_kind(acts: Activities, rows: Array) -> dict[ActivityKind, npt.NDArray[np.int64]]:
    """Return activities by kind of device work."""
    return {kind: rows[acts.kind[rows] == kind] for kind in DEVICE}


def _work(executor: str, graph: DependencyGraph, rows: dict[ActivityKind, npt.NDArray[np.int64]]) -> Work:
    acts = graph.activities
    every = np.concatenate(list(rows.values()))
    start = int(acts.start[every].min()) if len(every) else 0
    end = int(acts.end[every].max()) if len(every) else 0
    by_kind = {kind: union(acts.start[row], acts.end[row]) for kind, row in rows.items()}
    nothing = np.zeros(0, np.int64)
    return Work(executor, by_kind, start, end, beside=(nothing, nothing))
