"""What keeps each rank busy, as interval sets: the query that breakdowns, overlap and summary share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.intervals import Intervals, union
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Work", "self_time", "work_of"]

_DEVICE_KINDS = (
    ActivityKind.COMPUTATION,
    ActivityKind.COMMUNICATION,
    ActivityKind.MEMORY,
    ActivityKind.DEVICE_OTHER,
)
_NO_PARENT = -1


@dataclass(frozen=True)
class Work:
    """When one rank was at work, by kind, and the window from its first to its last work."""

    executor: str
    """``"device"``, or ``"host"`` for a rank that has no device work: then operators compute."""
    by_kind: dict[ActivityKind, Intervals]
    """Keys COMPUTATION, COMMUNICATION, MEMORY, DEVICE_OTHER; normal interval sets, ns."""
    start: int
    end: int


def work_of(graph: DependencyGraph, rank: int) -> Work:
    """Return the work of a rank: that of its device streams, or of its threads where it used no device."""
    acts = graph.activities
    mine = acts.of_rank(rank)
    kinds = acts.kind[mine]
    if acts.on_device[mine].any():
        rows = {kind: mine.start + np.flatnonzero(kinds == kind) for kind in _DEVICE_KINDS}
        return _work("device", graph, rows)
    nothing = np.zeros(0, np.int64)
    rows = dict.fromkeys(_DEVICE_KINDS, nothing) | {
        ActivityKind.COMPUTATION: mine.start + np.flatnonzero((kinds == ActivityKind.OP) & _outermost_op(graph, mine)),
        ActivityKind.COMMUNICATION: mine.start + np.flatnonzero(kinds == ActivityKind.HOST_COMMUNICATION),
    }
    return _work("host", graph, rows)


def self_time(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return what each activity was at work itself, ns: the stretches that it owns, without what it encloses.

    As recorded: of a call that waited the waiting is its own time too.
    """
    edges, time = graph.edges, graph.time
    mine = np.flatnonzero(np.isin(edges.kind, (EdgeKind.BODY, EdgeKind.DATALOADER)) & (edges.activity >= 0))
    total = np.zeros(len(graph.activities), np.int64)
    np.add.at(total, edges.activity[mine], time[edges.target[mine]] - time[edges.source[mine]])
    return total


def _work(executor: str, graph: DependencyGraph, rows: dict[ActivityKind, npt.NDArray[np.int64]]) -> Work:
    acts = graph.activities
    every = np.concatenate(list(rows.values()))
    start = int(acts.start[every].min()) if len(every) else 0
    end = int(acts.end[every].max()) if len(every) else 0
    by_kind = {kind: union(acts.start[row], acts.end[row]) for kind, row in rows.items()}
    return Work(executor, by_kind, start, end)


def _outermost_op(graph: DependencyGraph, some: slice) -> npt.NDArray[np.bool_]:
    """Return which of some activities lie directly in nothing but an annotation, a Python frame or their thread."""
    acts = graph.activities
    parent = acts.parent[some]
    parent_kind = np.where(parent >= 0, acts.kind[parent], _NO_PARENT)
    return ~np.isin(parent_kind, (ActivityKind.OP, ActivityKind.HOST_COMMUNICATION))
