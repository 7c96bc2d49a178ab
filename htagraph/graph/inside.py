"""What is inside activities: one answer for selections and for changes.

The tree of a graph (`DependencyGraph.tree`) gives each activity one parent. Two relations go beyond the tree. In the
tree, a step is the parent of operators of other threads that start during the step, even if a region that began in the
step before encloses these operators: the operators are inside both. And communication on a thread of its own (gloo)
belongs to the operator that asked for the communication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Mask, marked
from htagraph.core.computing import once
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind, of_kinds
from htagraph.core.parents import nearest

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["asked_at", "asked_by", "inside"]


def inside(graph: DependencyGraph, chosen: Mask) -> Mask:
    """Return which activities are inside chosen activities: called, launched or asked for by them.

    Args:
        graph: the job.
        chosen: a mask of activities. An activity is not inside itself.

    Returns:
        A mask of activities.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> steps = graph.activities.kind == ActivityKind.STEP
        >>> bool((inside(graph, steps) & steps).any())
        False
    """
    enclosed = graph.tree.inside(chosen)
    begins_outside = _in_later_steps(graph)
    if chosen.any() and len(begins_outside):
        callers = graph.activities.parent[begins_outside]
        is_enclosed = nearest(graph.activities.parent, chosen, callers) >= 0
        adopted = marked(begins_outside[is_enclosed], len(chosen))
        enclosed = enclosed | adopted | graph.tree.inside(adopted)
    return enclosed | asked_by(graph, chosen | enclosed)


@once
def _in_later_steps(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the activities with a step as parent that a region of the same thread encloses."""
    acts = graph.activities
    is_step = np.append(acts.kind == ActivityKind.STEP, False)
    by_step = is_step[graph.tree.parent]
    apart = (acts.parent >= 0) & (acts.parent != graph.tree.parent)
    return np.flatnonzero(by_step & apart & ~acts.on_device)


def asked_by(graph: DependencyGraph, chosen: Mask) -> Mask:
    """Return the communication on host threads (gloo) that chosen operators asked for.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")  # whose communication is on devices
        >>> bool(asked_by(graph, graph.activities.kind == ActivityKind.OP).any())
        False
    """
    mask = np.zeros(len(chosen), np.bool_)
    rows = np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)
    if not len(rows):
        return mask
    edge = asked_at(graph, rows)
    is_asked = edge >= 0
    mask[rows[is_asked]] = chosen[graph.edges.source[edge[is_asked]] >> 1]
    return mask


def asked_at(graph: DependencyGraph, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the edge from the operator that asked for each communication to its start; -1 if none is known.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> asked_at(graph, np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)).tolist()
        []
    """
    return _asked(graph)[rows]


@once
def _asked(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    acts = graph.activities
    edges = graph.edges
    rows = np.flatnonzero((edges.kind == EdgeKind.THREAD) & (edges.target % 2 == 0))
    source = edges.source[rows] >> 1
    target = edges.target[rows] >> 1
    rows = rows[(acts.lane[source] != acts.lane[target]) & ~of_kinds(acts.kind[source], COMMUNICATION)]
    rows = rows[np.argsort(edges.confidence[rows], kind="stable")]  # the surest is written last
    edge = np.full(len(acts), -1, np.int64)
    edge[edges.target[rows] >> 1] = rows
    return edge
