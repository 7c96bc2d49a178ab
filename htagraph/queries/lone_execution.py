"""Single executions that take most of the time of all executions of their name on their rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.kinds import ActivityKind, GapKind, of_kinds
from htagraph.core.naming import is_data_loader, is_source_frame, names_that
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.path_segments import Segments

__all__ = ["LoneExecution", "lone_executions"]

_WORK = (ActivityKind.OP, ActivityKind.COMPUTATION)
"""Kinds of work whose executions are compared: copies, and transfers between ranks, differ by size and by wait."""


@dataclass(frozen=True)
class LoneExecution:
    """An execution that takes most of the time of all executions of its name on its rank."""

    activity: int
    own_ns: int
    """Its own time, without the work inside and without waits for devices, ns."""
    path_ns: int
    """How much of the critical path it takes, ns."""
    total_ns: int
    """The own time of all executions of its name on its rank, ns."""
    count: int
    """How many executions these are."""
    is_first: bool
    """Whether no execution of its name starts before it on its rank."""
    around: str
    """The name of the annotation or source frame around it; empty for none."""


def lone_executions(graph: DependencyGraph, parts: Segments, least_ns: float, apart: Mask) -> list[LoneExecution]:
    """Return the executions on a path that take at least half of the time of their name, the longest first.

    Args:
        graph: the job.
        parts: stretches of the critical path.
        least_ns: the least time on these stretches, ns.
        apart: activities that are left out, as something else explains their time.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> nothing = np.zeros(len(graph.activities), np.bool_)
        >>> lone_executions(graph, hg.critical_path(graph).segments, 1_000_000, nothing)
        []
    """
    acts = graph.activities
    worked = (parts.gap == GapKind.NONE) & (parts.activity >= 0)
    path_ns = np.zeros(len(acts), np.int64)
    np.add.at(path_ns, parts.activity[worked], parts.length[worked])
    is_long = (path_ns >= max(least_ns, 1)) & of_kinds(acts.kind, _WORK) & ~apart
    is_long &= ~names_that(is_data_loader, graph.names)[acts.name]
    own_ns = np.where(acts.on_device, acts.duration, graph.own_time)
    executions = list[LoneExecution]()
    for row in np.flatnonzero(is_long).tolist():
        alike = _alike(graph, row)
        total_ns = int(own_ns[alike].sum())
        if len(alike) < SEVERAL or own_ns[row] < MOST * total_ns:
            continue
        execution = LoneExecution(
            activity=row,
            own_ns=int(own_ns[row]),
            path_ns=int(path_ns[row]),
            total_ns=total_ns,
            count=len(alike),
            is_first=bool(acts.start[row] == acts.start[alike].min()),
            around=_around(graph, row),
        )
        executions.append(execution)
    return sorted(executions, key=lambda execution: -execution.path_ns)


def _alike(graph: DependencyGraph, row: int) -> Array:
    """Return the executions of the name and kind of an activity on its rank."""
    acts = graph.activities
    of_rank = acts.of_rank(int(acts.rank[row]))
    is_alike = (acts.name[of_rank] == acts.name[row]) & (acts.kind[of_rank] == acts.kind[row])
    return of_rank.start + np.flatnonzero(is_alike)


def _around(graph: DependencyGraph, row: int) -> str:
    """Return the name of the innermost annotation or source frame around an activity; empty for none."""
    acts = graph.activities
    is_place = acts.kind == ActivityKind.ANNOTATION
    is_frame = names_that(is_source_frame, graph.names)[acts.name]
    is_place |= is_frame & (acts.kind == ActivityKind.PYTHON)
    is_place[row] = False
    place = int(graph.tree.nearest(is_place, [row])[0])
    return graph.names[acts.name[place]] if place >= 0 else ""
