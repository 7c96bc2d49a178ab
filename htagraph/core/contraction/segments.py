"""The path in a large DAG that an edge of its small one stands for. Compiled by numba."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["segment"]


@njit(cache=True)
def segment(  # noqa: PLR0913, PLR0917 - a graph as arrays, and two of its vertices
    first: int, last: int, place: Array, offsets: Array, edges: Array, source: Array, weight: Array, kept: Array
) -> Array:
    """Return the edges of a longest path from one vertex to a later one that meets no kept vertex between; else none.

    Only vertices that are between the two are looked at.

    Args:
        first: where the path begins.
        last: where it ends.
        place: of each vertex, its place in a topological order.
        offsets: where the entries of each vertex begin in `edges`.
        edges: the numbers of the edges that enter each vertex.
        source: the vertex where each edge begins, by edge number.
        weight: by edge number.
        kept: a mask of vertices.
    """
    between = _between(first, last, place, offsets, edges, source, kept)
    number = {first: -1}  # of a vertex that the path may meet, the edge by which it does
    length = {first: 0}
    for at_place in np.argsort(place[between]):
        vertex = int(between[at_place])
        for i in range(offsets[vertex], offsets[vertex + 1]):
            edge = edges[i]
            before = int(source[edge])
            if before in length and (before == first or not kept[before]):
                via = length[before] + int(weight[edge])
                if vertex not in length or via > length[vertex]:
                    length[vertex], number[vertex] = via, int(edge)
    path, count, at = np.empty(len(between), np.int64), 0, last
    while at != first and at in number:
        path[count] = number[at]
        count += 1
        at = int(source[number[at]])
    return path[:count][::-1]


@njit(no_cpython_wrapper=True)
def _between(  # noqa: PLR0913, PLR0917 - as above
    first: int, last: int, place: Array, offsets: Array, edges: Array, source: Array, kept: Array
) -> Array:
    """Return the vertices, `last` among them, from which `last` follows over vertices that are not kept."""
    stack, seen, found = [last], {last}, [last]
    while len(stack):
        vertex = stack.pop()
        for i in range(offsets[vertex], offsets[vertex + 1]):
            before = int(source[edges[i]])
            if before not in seen and not kept[before] and place[before] > place[first]:
                seen.add(before)
                stack.append(before)
                found.append(before)
    return np.array(found)
