"""The use of a value that the host fetches from its device: where it is used at once, its wait cannot be moved."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import collective_op, is_condition, names_that, takes_sizes
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS

__all__ = ["Use", "use_of"]

Use: TypeAlias = Literal["sizes", "shape", "condition", ""]
"""The purpose of a value: the sizes of the next collective, a size that the next operator takes, or a condition of the
program; empty where nothing shows a purpose."""
_OF_ANY_SIZE: Final = frozenset({"all_to_all", "all_gather", "send_recv", "gather", "scatter", "reduce_scatter"})
"""Collectives whose sizes may depend on data. Source: calls of torch.distributed with sizes or lists of tensors."""


def use_of(graph: DependencyGraph, calls: Ints) -> Use:
    """Return the purpose of the values that some calls wait for, if nearly all values have the same purpose.

    Args:
        graph: the job.
        calls: the calls of the host that block until the device is done.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> use_of(graph, graph.select(op="aten::item", name="cudaMemcpyAsync").activities)
        ''
    """
    if not len(calls):
        return ""
    if _hold_for_nearly_all(_are_conditions(graph, calls)):
        return "condition"
    if _hold_for_nearly_all(_are_before_collectives(graph, calls)):
        return "sizes"
    if _hold_for_nearly_all(_are_before_sizes(graph, calls)):
        return "shape"
    return ""


def _hold_for_nearly_all(holds: Mask) -> bool:
    """Return whether a condition holds for nearly all calls."""
    return float(holds.mean()) >= LIMITS.nearly_all


def _are_conditions(graph: DependencyGraph, calls: Ints) -> Mask:
    """Return which calls are inside an operator by which Python takes the truth of a tensor."""
    is_asked = names_that(is_condition, graph.names)[graph.activities.name]
    return graph.tree.inside(is_asked)[calls]


def _are_before_collectives(graph: DependencyGraph, calls: Ints) -> Mask:
    """Return which calls are followed by the launch of a collective of any size, with no other launch between."""
    acts = graph.activities
    works = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    of_any_size = names_that(lambda name: collective_op(name) in _OF_ANY_SIZE, graph.names)
    is_sized = of_any_size[acts.name[works]] & (acts.kind[works] == ActivityKind.COMMUNICATION)
    launches = acts.cause[works].astype(np.int64)
    # a copy that is awaited is over when its call returns: the next launch begins later
    next_work = _next_on_thread(graph, launches, calls)
    has_next = next_work >= 0
    holds = np.zeros(len(calls), np.bool_)
    holds[has_next] = is_sized[next_work[has_next]]
    return holds


def _are_before_sizes(graph: DependencyGraph, calls: Ints) -> Mask:
    """Return which calls are followed at once by an operator that takes sizes."""
    acts = graph.activities
    ops = np.flatnonzero(acts.kind == ActivityKind.OP)
    next_op = _next_on_thread(graph, ops, _outermost(graph, calls))
    has_next = next_op >= 0
    fetching = calls[has_next]
    using = ops[next_op[has_next]]
    pause_ns = acts.start[using] - graph.time[2 * fetching + 1]
    takes = names_that(takes_sizes, graph.names)[acts.name[using]]
    is_at_once = pause_ns <= LIMITS.launch_ns
    is_same_step = acts.step[using] == acts.step[fetching]
    holds = np.zeros(len(calls), np.bool_)
    holds[has_next] = takes & is_at_once & is_same_step
    return holds


def _outermost(graph: DependencyGraph, calls: Ints) -> Ints:
    """Return the outermost operator around each call; the call itself where none is."""
    is_op = graph.activities.kind == ActivityKind.OP
    place = calls.astype(np.int64)
    above = graph.tree.nearest(is_op, place)
    while (above >= 0).any():
        place = np.where(above >= 0, above, place)
        parent = graph.tree.parent[above]
        is_inside_op = (above >= 0) & (parent >= 0) & is_op[parent]
        above = np.where(is_inside_op, parent, -1)
    return place


def _next_on_thread(graph: DependencyGraph, rows: Ints, after: Ints) -> Ints:
    """Return the first activity that begins on the same thread once another activity ended; -1 for none.

    Args:
        graph: the job.
        rows: the activities to choose from.
        after: the activities that end before; one result for each.

    Returns:
        Positions in `rows`.
    """
    acts = graph.activities
    order = np.lexsort((acts.start[rows], acts.lane[rows]))
    lanes = acts.lane[rows][order]
    starts = acts.start[rows][order]
    ends = graph.time[2 * after + 1]
    lane_of = acts.lane[after]
    position = np.full(len(after), -1, np.int64)
    for lane in np.unique(lane_of).tolist():
        first, stop = np.searchsorted(lanes, [lane, lane + 1])
        of_lane = np.flatnonzero(lane_of == lane)
        place = first + np.searchsorted(starts[first:stop], ends[of_lane])
        is_there = place < stop
        position[of_lane[is_there]] = order[place[is_there]]
    return position
