"""One pass over a DAG that leaves out every vertex that a single other one decides. Compiled by numba."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit
from htagraph.core.contraction.vectors import UNBOUNDED, Weights, covers

__all__ = ["Collapsed", "collapse", "relevant_ends"]

Array: TypeAlias = npt.NDArray[Any]

_FIRST_EDGES = 1024
"""Edges for which memory is taken at first; it doubles when it is full. Chosen; it changes speed only."""


class Collapsed(NamedTuple):
    """The edges that are left. A vertex is left if it is a terminal or an end of one of them."""

    source: Array
    target: Array
    weight: Array
    """One row per edge, one column per component."""
    edge_count: int
    """How many edges there are; the arrays have room for more."""
    work: int
    """How many edges, and pairs of parallel edges, were looked at."""


@njit(cache=True)
def relevant_ends(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, offsets: Array, edges: Array, target: Array, weights: Weights, bounds: Array, ends: Array
) -> Array:  # fmt: skip
    """Return which of the vertices `ends` may happen last: no other of them always follows at the same time or later.

    Args:
        order: the vertices in topological order.
        offsets: where the entries of each vertex begin in `edges`.
        edges: the numbers of the edges that leave each vertex.
        target: the vertex where each edge ends, by edge number.
        weights: of the edges.
        bounds: of each component, the largest factor or `UNBOUNDED`.
        ends: a mask of vertices.
    """
    followed = np.zeros(len(order), np.bool_)
    for i in range(len(order) - 1, -1, -1):
        vertex = order[i]
        for j in range(offsets[vertex], offsets[vertex + 1]):
            edge = edges[j]
            if (ends[target[edge]] or followed[target[edge]]) and _never_negative(weights, edge, bounds):
                followed[vertex] = True
                break
    return ends & ~followed


@njit(no_cpython_wrapper=True)
def _never_negative(weights: Weights, edge: int, bounds: Array) -> bool:
    least = weights.base[edge]
    for i in range(weights.offsets[edge], weights.offsets[edge + 1]):
        if weights.amount[i] < 0:
            if bounds[weights.component[i]] == UNBOUNDED:
                return False
            least += bounds[weights.component[i]] * weights.amount[i]
    return bool(least >= 0)


@njit(cache=True)
def collapse(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, offsets: Array, edges: Array, source: Array, weights: Weights, terminal: Array, bounds: Array
) -> Collapsed:
    """Return the edges between vertices that more than one path decides, and terminals.

    A vertex is left out if all edges that enter it come, over vertices left out, from one vertex, and one of the paths
    covers all others. What leaves it then leaves that vertex, longer by that path. The same pass goes backwards if
    `order` is reversed, `edges` are those that leave each vertex, and `source` is the vertex where an edge ends: then
    `source` and `target` of the result are exchanged too.

    Args:
        order: the vertices in topological order.
        offsets: where the entries of each vertex begin in `edges`.
        edges: the numbers of the edges that enter each vertex.
        source: the vertex where each edge begins, by edge number.
        weights: of the edges.
        terminal: a mask of vertices that stay.
        bounds: of each component, the largest factor or `UNBOUNDED`; that of the first one is not read.
    """
    anchor = np.full(len(order), -1, np.int32)  # the vertex that decides when this one happens; -1 if nothing does
    beyond = np.zeros((len(order), len(bounds)), np.int64)  # how long after its anchor
    latest = np.full(len(order), -1, np.int64)  # by vertex, the last edge that was made from it
    sources, targets = np.empty(_FIRST_EDGES, np.int32), np.empty(_FIRST_EDGES, np.int32)
    before, made = np.empty(_FIRST_EDGES, np.int64), np.empty((_FIRST_EDGES, len(bounds)), np.int64)
    count, work = 0, 0
    for vertex in order:
        begin = count
        first, last = offsets[vertex], offsets[vertex + 1]
        if last == first + 1 and not terminal[vertex]:  # most vertices: nothing to compare
            work += 1
            anchor[vertex] = anchor[source[edges[first]]]
            _extend(beyond, vertex, beyond, source[edges[first]], weights, edges[first])
            continue
        for i in range(first, last):
            edge = edges[i]
            root = anchor[source[edge]]
            work += 1
            if root < 0:
                continue
            if count == len(sources):
                sources, targets, before, made = _room(sources), _room(targets), _room(before), _rows_room(made)
            _extend(made, count, beyond, source[edge], weights, edge)
            work += _offer(count, begin, root, sources, before, latest, made, bounds)
            count += 1
        count = _compact(begin, count, sources, made, latest)
        if count == begin + 1 and not terminal[vertex]:
            anchor[vertex] = sources[begin]
            _copy(beyond, vertex, made, begin)
            count = begin
        elif count > begin or terminal[vertex]:
            anchor[vertex] = vertex
            for i in range(begin, count):
                targets[i] = vertex
    return Collapsed(sources, targets, made, count, work)


@njit(no_cpython_wrapper=True)
def _extend(
    result: Array, row: int, paths: Array, path: int, weights: Weights, edge: int
) -> None:  # fmt: skip
    """Set a row of `result` to the weight of a path and the edge behind it."""
    for i in range(result.shape[1]):
        result[row, i] = paths[path, i]
    result[row, 0] += weights.base[edge]
    for i in range(weights.offsets[edge], weights.offsets[edge + 1]):
        result[row, weights.component[i]] += weights.amount[i]


@njit(no_cpython_wrapper=True)
def _copy(result: Array, row: int, paths: Array, path: int) -> None:
    for i in range(result.shape[1]):
        result[row, i] = paths[path, i]


@njit(no_cpython_wrapper=True)
def _offer(  # noqa: PLR0913, PLR0917 - one vertex's part of the arrays above
    new: int, begin: int, root: int, sources: Array, before: Array, latest: Array, made: Array, bounds: Array
) -> int:
    """Mark the edges from `root` that another one covers, given a new one; return how many it was compared with.

    Edges from `begin` on enter the vertex at hand. A marked one has the source -1.
    """
    sources[new], before[new] = root, latest[root]
    at, compared = latest[root], 0
    latest[root] = new
    while at >= begin:
        if sources[at] >= 0:
            compared += 1
            if covers(made, at, made, new, bounds):
                sources[new] = -1
                return compared
            if covers(made, new, made, at, bounds):
                sources[at] = -1
        at = before[at]
    return compared


@njit(no_cpython_wrapper=True)
def _compact(begin: int, count: int, sources: Array, made: Array, latest: Array) -> int:
    """Close the gaps that marked edges leave from `begin` on; return how many edges there are then."""
    kept = begin
    for at in range(begin, count):
        if sources[at] >= 0:
            latest[sources[at]] = -1  # numbers below belong to the next vertex now
            if kept < at:
                sources[kept] = sources[at]
                _copy(made, kept, made, at)
            kept += 1
    return kept


@njit(no_cpython_wrapper=True)
def _room(array: Array) -> Array:
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):
        larger[i] = array[i]
    return larger


@njit(no_cpython_wrapper=True)
def _rows_room(array: Array) -> Array:
    larger = np.empty((2 * len(array), array.shape[1]), array.dtype)
    for i in range(len(array)):
        _copy(larger, i, array, i)
    return larger
