"""The use of a value that the host fetches from its device: where it is used at once, its wait cannot be moved."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Ints
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import collective_op, is_condition, names_that, takes_sizes
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS

__all__ = ["Use", "use_of"]

Use: TypeAlias = Literal["sizes", "shape", "condition", ""]
"""What a value is for: the sizes of the next collective, a size that the next operator takes, or a condition of the
program; empty where nothing shows it."""
_OF_ANY_SIZE: Final = frozenset({"all_to_all", "all_gather", "send_recv", "gather", "scatter", "reduce_scatter"})
"""Collectives whose sizes may depend on data. Source: calls of torch.distributed with sizes or lists of tensors."""


def use_of(graph: DependencyGraph, calls: Ints) -> Use:
    """Return what the values are for that some calls wait for, if nearly all of them are for the same.

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
    if _share(_are_conditions(graph, calls)):
        return "condition"
    if _share(_are_before_collectives(graph, calls)):
        return "sizes"
    if _share(_are_before_sizes(graph, calls)):
        return "shape"
    return ""


def _share(holds: npt.NDArray[np.bool_]) -> bool:
    """Return whether something holds for nearly all calls."""
    return float(holds.mean()) >= LIMITS.nearly_all


def _are_conditions(graph: DependencyGraph, calls: Ints) -> npt.NDArray[np.bool_]:
    """Return which calls are inside an operator by which Python takes the truth of a tensor."""
    is_asked = names_that(is_condition, graph.names)[graph.activities.name]
    return graph.tree.inside(is_asked)[calls]


def _are_before_collectives(graph: DependencyGraph, calls: Ints) -> npt.NDArray[np.bool_]:
    """Return which calls are followed by the launch of a collective of any size, with no other launch between."""
    acts = graph.activities
    works = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    of_any_size = names_that(lambda name: collective_op(name) in _OF_ANY_SIZE, graph.names)
    is_sized = of_any_size[acts.name[works]] & (acts.kind[works] == ActivityKind.COMMUNICATION)
    # a copy that is awaited is over when its call returns: the next launch begins later
    next_work = _next_on_thread(graph, acts.cause[works].astype(np.int64), calls)
    holds = np.zeros(len(calls), np.bool_)
    known = next_work >= 0
    holds[known] = is_sized[next_work[known]]
    return holds


def _are_before_sizes(graph: DependencyGraph, calls: Ints) -> npt.NDArray[np.bool_]:
    """Return which calls are followed at once by an operator that takes sizes."""
    acts = graph.activities
    ops = np.flatnonzero(acts.kind == ActivityKind.OP)
    next_op = _next_on_thread(graph, ops, _outermost(graph, calls))
    holds = np.zeros(len(calls), np.bool_)
    known = next_op >= 0
    rows = ops[next_op[known]]
    pause_ns = acts.start[rows] - graph.time[2 * calls[known] + 1]
    takes = names_that(takes_sizes, graph.names)[acts.name[rows]]
    holds[known] = takes & (pause_ns <= LIMITS.launch_ns) & (acts.step[rows] == acts.step[calls[known]])
    return holds


def _outermost(graph: DependencyGraph, calls: Ints) -> Ints:
    """Return the outermost operator around each call; the call itself where none is."""
    is_op = graph.activities.kind == ActivityKind.OP
    place = calls.astype(np.int64)
    above = graph.tree.nearest(is_op, place)
    while (above >= 0).any():
        place = np.where(above >= 0, above, place)
        parent = graph.tree.parent[above]
        above = np.where((above >= 0) & (parent >= 0) & is_op[parent], parent, -1)
    return place


def _next_on_thread(graph: DependencyGraph, rows: Ints, after: Ints) -> Ints:
    """Return the position in `rows` of the first that begins on the same thread once an activity ended; -1 for none."""
    acts = graph.activities
    order = np.lexsort((acts.start[rows], acts.lane[rows]))
    lanes = acts.lane[rows][order]
    starts = acts.start[rows][order]
    found = np.full(len(after), -1, np.int64)
    for lane in np.unique(acts.lane[after]).tolist():
        first, stop = np.searchsorted(lanes, [lane, lane + 1])
        of_lane = np.flatnonzero(acts.lane[after] == lane)
        place = first + np.searchsorted(starts[first:stop], graph.time[2 * after[of_lane] + 1])
        is_there = place < stop
        found[of_lane[is_there]] = order[place[is_there]]
    return found
