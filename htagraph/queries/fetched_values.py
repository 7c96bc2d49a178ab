"""The use of a value that the host waits for: a value that is used at once cannot be waited for later."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import collective_op, is_condition, is_copy_to_device, names_that, takes_sizes
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS

__all__ = ["Use", "use_of"]

Use: TypeAlias = Literal["sizes", "shape", "condition", "upload", ""]
"""The purpose of a value: the sizes of the next collective, a size that the next operator takes, a condition of the
program, or work of the device, for which the host copies a few bytes to the device; empty where nothing shows one."""
_OF_ANY_SIZE: Final = frozenset({"all_to_all", "send_recv"})
"""Collectives whose sizes often depend on data. Source: calls of torch.distributed with sizes for each rank."""
_OF_SOME_SIZE: Final = frozenset({"all_gather", "gather", "scatter", "reduce_scatter"})
"""Collectives whose sizes depend on data where recorded sizes differ; of sharded parameters they do not. Source: calls
of torch.distributed with lists of tensors, and fully_shard."""
_FEW_BYTES: Final = 1024
"""Bytes of a value that may stay on the device: scalars, lists of sizes, small masks. Chosen: inputs and parameters are
larger. Doubled, rows of token numbers are called values."""


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
    if _hold_for_nearly_all(_are_behind_uploads(graph, calls)):
        return "upload"
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
    of_some_size = names_that(lambda name: collective_op(name) in _OF_SOME_SIZE, graph.names)
    is_collective = acts.kind[works] == ActivityKind.COMMUNICATION
    launches = acts.cause[works].astype(np.int64)
    # a copy that is awaited is over when its call returns: the next launch begins later
    next_work = _next_on_thread(graph, launches, calls)
    has_next = next_work >= 0
    following = works[next_work[has_next]]
    is_sized = of_any_size[acts.name[following]]
    if _differ(graph, following):
        is_sized |= of_some_size[acts.name[following]]
    holds = np.zeros(len(calls), np.bool_)
    holds[has_next] = is_sized & is_collective[next_work[has_next]]
    return holds


def _differ(graph: DependencyGraph, works: Ints) -> bool:
    """Return whether the sizes of some collectives were recorded, and are not all equal."""
    bytes_of = np.full(len(graph.activities), -1, np.int64)
    bytes_of[graph.waits.activity] = graph.waits.bytes
    sizes = bytes_of[works]
    is_recorded = bool((sizes >= 0).all())
    return is_recorded and len(np.unique(sizes)) > 1


def _are_behind_uploads(graph: DependencyGraph, calls: Ints) -> Mask:
    """Return which calls wait for a copy of a few bytes to the device that the operator around them has just asked for.

    A copy from pageable memory makes the host wait for all work before the copy.
    """
    acts = graph.activities
    is_op = acts.kind == ActivityKind.OP
    works = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    size = acts.arg("bytes")[works]
    is_upload = names_that(is_copy_to_device, graph.names)[acts.name[works]]
    is_upload &= size >= 0
    is_upload &= size <= _FEW_BYTES
    launches = acts.cause[works].astype(np.int64)
    last_work = _last_on_thread(graph, launches, calls)
    has_last = last_work >= 0
    operator = graph.tree.nearest(is_op, calls[has_last])
    asking = graph.tree.nearest(is_op, launches[last_work[has_last]])
    holds = np.zeros(len(calls), np.bool_)
    holds[has_last] = is_upload[last_work[has_last]]
    holds[has_last] &= operator == asking
    holds[has_last] &= operator >= 0
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


def _last_on_thread(graph: DependencyGraph, rows: Ints, before: Ints) -> Ints:
    """Return the last activity that begins on the same thread no later than another activity; -1 for none.

    Args:
        graph: the job.
        rows: the activities to choose from.
        before: the activities that begin later; one result for each.

    Returns:
        Positions in `rows`.
    """
    moments = graph.activities.start[before]
    return _on_thread(
        graph,
        rows,
        before,
        moments + 1,
        step=-1,
    )


def _next_on_thread(graph: DependencyGraph, rows: Ints, after: Ints) -> Ints:
    """Return the first activity that begins on the same thread once another activity ended; -1 for none.

    Args:
        graph: the job.
        rows: the activities to choose from.
        after: the activities that end before; one result for each.

    Returns:
        Positions in `rows`.
    """
    moments = graph.time[2 * after + 1]
    return _on_thread(
        graph,
        rows,
        after,
        moments,
        step=0,
    )


def _on_thread(
    graph: DependencyGraph,
    rows: Ints,
    near: Ints,
    moments: Ints,
    *,
    step: int,
) -> Ints:
    """Return the activity of the same thread that begins first at a moment or later, or one before; -1 for none.

    Args:
        graph: the job.
        rows: the activities to choose from.
        near: the activities whose threads count; one result for each.
        moments: a moment for each of these activities.
        step: 0 for the first activity at the moment or later, -1 for the last one before.

    Returns:
        Positions in `rows`.
    """
    acts = graph.activities
    order = np.lexsort((acts.start[rows], acts.lane[rows]))
    lanes = acts.lane[rows][order]
    starts = acts.start[rows][order]
    lane_of = acts.lane[near]
    position = np.full(len(near), -1, np.int64)
    for lane in np.unique(lane_of).tolist():
        first, stop = np.searchsorted(lanes, [lane, lane + 1])
        of_lane = np.flatnonzero(lane_of == lane)
        place = np.searchsorted(starts[first:stop], moments[of_lane])
        place += first + step
        is_there = place >= first
        is_there &= place < stop
        position[of_lane[is_there]] = order[place[is_there]]
    return position
