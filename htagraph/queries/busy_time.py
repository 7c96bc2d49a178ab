"""When each rank is busy, by kind of work, as interval sets: breakdowns, overlap and summary share it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from htagraph.core.intervals import Intervals, union
from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import DEVICE, OPERATORS, ActivityKind, EdgeKind, Provenance
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.arrivals import blocked_since

__all__ = ["Work", "self_time", "work_of"]

_NO_PARENT = -1
"""In place of the kind of a parent, where there is none."""


@dataclass(frozen=True)
class Work:
    """When one rank is busy, by kind of work, and the window from its first to its last work."""

    executor: str
    """``"device"``, or ``"host"`` for a rank without device work, whose operators are its computation.

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


def work_of(graph: DependencyGraph, rank: int) -> Work:
    """Return the work of a rank: on its device streams, or on its threads if it uses no device."""
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    kinds = acts.kind[of_rank]
    if acts.on_device[of_rank].any():
        rows = {kind: of_rank.start + np.flatnonzero(kinds == kind) for kind in DEVICE}
        return _work("device", graph, rows)
    nothing = np.zeros(0, np.int64)
    talks = of_rank.start + np.flatnonzero(kinds == ActivityKind.HOST_COMMUNICATION)
    rows = dict.fromkeys(DEVICE, nothing) | {
        ActivityKind.COMPUTATION: of_rank.start
        + np.flatnonzero((kinds == ActivityKind.OP) & _outermost_op(graph, of_rank)),
        ActivityKind.COMMUNICATION: talks,
    }
    work = _work("host", graph, rows)
    since = blocked_since(acts, talks)
    waited = union(since, acts.end[talks])
    beside = union(acts.start[talks], since)
    return replace(work, by_kind=work.by_kind | {ActivityKind.COMMUNICATION: waited}, beside=beside)


def self_time(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the self time of each activity, ns: its duration without the activities that it encloses.

    As recorded: the wait of a blocking call is part of its self time. Annotations have none: they only name a time,
    which is that of the activity around them.
    """
    edges, time = graph.edges, graph.time
    produced = (edges.kind == EdgeKind.DATALOADER) & (edges.provenance == Provenance.INFERRED)  # by processes elsewhere
    own = of_kinds(edges.kind, (EdgeKind.BODY, EdgeKind.DATALOADER)) & (edges.activity >= 0) & ~produced
    own = np.flatnonzero(own)
    total = np.zeros(len(graph.activities), np.int64)
    np.add.at(total, edges.activity[own], time[edges.target[own]] - time[edges.source[own]])
    return total


def _work(executor: str, graph: DependencyGraph, rows: dict[ActivityKind, npt.NDArray[np.int64]]) -> Work:
    acts = graph.activities
    every = np.concatenate(list(rows.values()))
    start = int(acts.start[every].min()) if len(every) else 0
    end = int(acts.end[every].max()) if len(every) else 0
    by_kind = {kind: union(acts.start[row], acts.end[row]) for kind, row in rows.items()}
    nothing = np.zeros(0, np.int64)
    return Work(executor, by_kind, start, end, beside=(nothing, nothing))


def _outermost_op(graph: DependencyGraph, some: slice) -> npt.NDArray[np.bool_]:
    """Return True where an activity is in no operator: directly in an annotation, a Python frame or its thread."""
    acts = graph.activities
    parent = acts.parent[some]
    parent_kind = np.where(parent >= 0, acts.kind[parent], _NO_PARENT)
    return ~of_kinds(parent_kind, OPERATORS)
