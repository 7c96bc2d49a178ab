"""The one tree of activities: what encloses what, across threads and launches.

The parent of an activity:

- Kernel, copy or memset: its launch. In a replayed CUDA graph: the innermost frame that a capture has around it, if
  there is one; these frames are inside the launch.
- Host activity: the activity that encloses it on its own thread. If several enclose it that overlap only in part, the
  one that started last.
- Top-level activity of an autograd engine thread: the innermost operator, annotation, step or Python frame around it on
  the thread that called the engine, which is blocked until the engine is done.
- Host activity on any thread of the rank that starts during a step, while nothing that also started during the step
  encloses it: the step.

The activities that the graph adds (the BOUNDARY of a step, the JOINs of collectives) have no parent and no children.

Selections, attribution, breakdowns, annotations, changes, call stacks and figures all use `DependencyGraph.tree`, so
the time inside a step, an annotation or an operator is the same figure by every route. `Activities.parent` is narrower:
it holds what encloses a host activity on its own thread, which is what self time on that thread needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, inverse_of, looked_up, marked, spread
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, ANNOTATIONS, COMMUNICATION, FRAMES, OPERATORS, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import is_autograd_node, is_backward
from htagraph.core.parents import ancestors, depth_first, depths, nearest, outermost

if TYPE_CHECKING:
    from htagraph.graph.activities import Activities
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Tree", "asked_at", "asked_by", "called_by", "innermost_around", "inside", "tree_of"]


@dataclass(frozen=True, eq=False)
class Tree:
    """The parent of every activity, and a depth-first order in which everything inside an activity is one slice.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> step = graph.select(kind="step", rank=0).activities[0]
        >>> inside = graph.tree.order[graph.tree.first[step] + 1 : graph.tree.stop[step]]
        >>> sorted(inside.tolist()) == graph.select(activity=[step]).descendants().activities.tolist()
        True
    """

    parent: Ints
    """Per activity: its parent, -1 for none."""
    depth: npt.NDArray[np.int32]
    """Per activity: how many activities it is inside of."""
    order: Ints
    """All activities, each before everything inside it, siblings by start."""
    first: Ints
    """Per activity: its position in `order`."""
    stop: Ints
    """Per activity: the position in `order` after the last activity inside it; `first` + 1 for a leaf."""

    def inside(self, chosen: Mask) -> Mask:
        """Return which activities are inside a chosen one, at any depth; none is inside itself."""
        first = np.sort(self.first[chosen])
        stop = self.stop[self.order[first]]
        outer = np.append([True], stop[1:] > np.maximum.accumulate(stop)[:-1])[: len(first)]  # inside no other
        return marked(self.order[spread(first[outer] + 1, stop[outer])[1]], len(self.parent))

    def around(self, chosen: Mask) -> Mask:
        """Return which activities enclose a chosen one, at any distance; none encloses itself."""
        count = np.concatenate(([0], np.cumsum(chosen[self.order])))
        return count[self.stop] > count[self.first + 1]

    def nearest(self, wanted: Mask, rows: npt.ArrayLike) -> Ints:
        """For each row, return the row itself if it is wanted, else its innermost wanted ancestor, or -1."""
        return nearest(self.parent, wanted, rows)

    def outermost(self, wanted: Mask) -> Ints:
        """Return the wanted activities that are inside no other wanted activity, ascending."""
        return outermost(self.parent, wanted)


def tree_of(acts: Activities, names: Sequence[str]) -> Tree:
    """Return the tree of the activities of all ranks."""
    parent = called_by(acts, names)
    _adopt_by_steps(acts, parent)
    return _ordered(acts, parent)


def called_by(acts: Activities, names: Sequence[str]) -> Ints:
    """Return the caller or launch of each activity, or -1: the tree without what steps enclose on other threads."""
    parent = np.where(acts.on_device & (acts.parent < 0), acts.cause, acts.parent).astype(np.int64)
    _adopt_engine_threads(acts, names, parent)
    return parent


def _ordered(acts: Activities, parent: Array) -> Tree:
    """Return the tree of given parents, with its depth-first order, level by level (no Python loop per activity)."""
    count, depth = len(parent), depths(parent)
    first, size = depth_first(parent, np.lexsort((np.arange(count), acts.start, acts.rank, parent)), depth)
    columns = parent, depth, inverse_of(first, count), first, first + size
    for column in columns:
        column.setflags(write=False)
    return Tree(*columns)


def _adopt_engine_threads(acts: Activities, names: Sequence[str], parent: Array) -> None:
    """Set the parent of each top-level activity of an autograd engine thread: what called the engine."""
    backward = np.array([is_backward(name) or is_autograd_node(name) for name in names], np.bool_)
    in_engine = backward[acts.name[: acts.ranked]] & (acts.kind[: acts.ranked] == ActivityKind.OP)
    in_engine &= ~acts.borrowed[: acts.ranked]  # these are on the thread of the launch
    engines = np.unique(acts.lane[: acts.ranked][in_engine])
    for rank in np.unique(acts.rank[: acts.ranked][in_engine]).tolist():
        of_rank = acts.of_rank(rank)
        caller = _caller(acts, of_rank, engines)
        if caller < 0:
            continue
        lane = acts.lane[of_rank]
        tops = of_rank.start + np.flatnonzero(np.isin(lane, engines[engines != caller]) & ~acts.on_device[of_rank])
        tops = tops[(parent[tops] < 0) & ~of_kinds(acts.kind[tops], (ActivityKind.STEP, *ADDED))]
        frames = of_rank.start + np.flatnonzero((lane == caller) & of_kinds(acts.kind[of_rank], FRAMES))
        caller_frame = innermost_around(acts, frames, acts.start[tops], acts.end[tops])
        outlasts = (acts.step[tops] < 0) & (acts.step[caller_frame] >= 0)  # the frame outlasts the step it began in
        parent[tops] = np.where(outlasts, -1, caller_frame)


def _caller(acts: Activities, of_rank: slice, engines: Array) -> int:
    """Return the lane of the thread that called the autograd engine, -1 if there is none.

    That is the busiest thread with steps; in a trace without steps, the busiest thread that is not an engine thread.
    """
    host = ~acts.on_device[of_rank]
    lane, kind = acts.lane[of_rank][host], acts.kind[of_rank][host]
    with_steps = lane[kind == ActivityKind.STEP]
    candidates = lane[np.isin(lane, with_steps)] if len(with_steps) else lane[~np.isin(lane, engines)]
    return int(np.argmax(np.bincount(candidates))) if len(candidates) else -1


def _adopt_by_steps(acts: Activities, parent: Array) -> None:
    """Set the parent of what starts during a step and has none, or only a region that started before it: the step."""
    marks = np.flatnonzero(acts.kind == ActivityKind.STEP)
    host = ~acts.on_device & ~of_kinds(acts.kind, (ActivityKind.STEP, *ADDED)) & (acts.step >= 0)
    rows = np.flatnonzero(host)
    if not len(marks) or not len(rows):
        return
    rows = rows[~ancestors(parent, marks)[rows]]  # a step cannot enclose what encloses it
    above = parent[rows]
    may_leave = ~of_kinds(acts.kind[above], OPERATORS) | (acts.lane[above] != acts.lane[rows])
    rows = rows[(above < 0) | (may_leave & (acts.step[above] != acts.step[rows]))]
    keys, first = np.unique(acts.rank_and_step(marks), return_index=True)
    step = looked_up(keys, marks[first], acts.rank_and_step(rows))
    parent[rows[step >= 0]] = step[step >= 0]


def innermost_around(acts: Activities, among: Array, start: Array, end: Array) -> Ints:
    """For each interval, return the innermost activity of a thread that contains it, or -1.

    Times are ns on the clock of the thread's rank.
    """
    if not len(among):
        return np.full(len(start), -1, np.int64)
    among = among[np.lexsort((-acts.end[among], acts.start[among]))]
    at = np.searchsorted(acts.start[among], start, side="right") - 1
    around = np.where(at >= 0, among[np.maximum(at, 0)], -1).astype(np.int64)
    while True:  # the last activity to start may end too early: go to its parent until one ends late enough
        short = (around >= 0) & (acts.end[around] < end)
        if not short.any():
            return around
        around[short] = acts.parent[around[short]]


def inside(graph: DependencyGraph, chosen: Mask) -> Mask:
    """Return which activities are inside chosen activities: called, launched or asked for by the activities.

    Two relations go beyond the tree. In the tree, a step is the parent of operators of another thread that start during
    the step, even if a region that began in the step before encloses these operators: the operators are inside both.
    And communication on a thread of its own (gloo) belongs to the operator that asked for the communication.

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
    is_caller = ~of_kinds(graph.activities.kind, ANNOTATIONS)  # a step or an annotation asks for nothing
    return enclosed | asked_by(graph, (chosen | enclosed) & is_caller)


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
