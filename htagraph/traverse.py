"""Walks over a DAG given as arrays: order, reach, longest paths. Compiled once with numba, cached on disk.

A graph is ``(offsets, neighbours)``: the neighbours of vertex v are ``neighbours[offsets[v]:offsets[v + 1]]``. This
module knows arrays only, so that the graph itself can be checked with it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = [
    "counting_order",
    "levels",
    "longest_path",
    "path_to",
    "reach",
    "redundant_edges",
    "schedule",
    "topological_order",
]

Array: TypeAlias = npt.NDArray[Any]


@njit(cache=True)
def counting_order(keys: Array, count: int) -> tuple[Array, Array]:
    """Return (offsets of each key, stable order by key) for integer keys in [0, count)."""
    offsets = np.zeros(count + 1, np.int64)
    for key in keys:
        offsets[key + 1] += 1
    for key in range(count):
        offsets[key + 1] += offsets[key]
    place = offsets[:-1].copy()
    order = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
    return offsets, order


@njit(cache=True)
def topological_order(offsets: Array, targets: Array) -> Array:
    """Return vertices so that each comes after all its predecessors; shorter than the graph if it has a cycle.

    Kahn's algorithm, first come first served, in the order of networkx's ``topological_sort``.
    """
    count = len(offsets) - 1
    waiting = np.zeros(count, np.int32)
    for target in targets:
        waiting[target] += 1
    order = np.empty(count, np.int32)
    filled = 0
    for vertex in range(count):
        if waiting[vertex] == 0:
            order[filled] = vertex
            filled += 1
    done = 0
    while done < filled:
        vertex = order[done]
        done += 1
        for i in range(offsets[vertex], offsets[vertex + 1]):
            target = targets[i]
            waiting[target] -= 1
            if waiting[target] == 0:
                order[filled] = target
                filled += 1
    return order[:filled]


@njit(cache=True)
def levels(order: Array, in_offsets: Array, in_sources: Array) -> Array:
    """Return for each vertex the number of edges on the longest path to it."""
    level = np.zeros(len(order), np.int32)
    for vertex in order:
        for i in range(in_offsets[vertex], in_offsets[vertex + 1]):
            level[vertex] = max(level[vertex], level[in_sources[i]] + 1)
    return level


@njit(cache=True)
def schedule(order: Array, in_offsets: Array, in_sources: Array, in_lags: Array, gap: Array, head: Array) -> Array:
    """Return the moment of each vertex: the latest its predecessors allow, plus its gap; `head` where it has none."""
    time = np.empty(len(order), np.int64)
    for vertex in order:
        first, last = in_offsets[vertex], in_offsets[vertex + 1]
        if first == last:
            time[vertex] = head[vertex]
            continue
        latest = time[in_sources[first]] + in_lags[first]
        for i in range(first + 1, last):
            candidate = time[in_sources[i]] + in_lags[i]
            latest = max(latest, candidate)
        time[vertex] = latest + gap[vertex]
    return time


@njit(cache=True)
def longest_path(order: Array, in_offsets: Array, in_sources: Array, in_weights: Array) -> tuple[Array, Array]:
    """Return (length of the heaviest path that ends in each vertex, the vertex before it on that path).

    As in networkx's ``dag_longest_path``: a path may begin anywhere, a vertex before which only negative lengths
    lie begins its own path and precedes itself, and the first of equals wins.
    """
    best = np.zeros(len(order), in_weights.dtype)
    before = np.arange(len(order)).astype(np.int32)
    for vertex in order:
        first, last = in_offsets[vertex], in_offsets[vertex + 1]
        if first == last:
            continue
        source = in_sources[first]
        length = best[source] + in_weights[first]
        for i in range(first + 1, last):
            candidate = best[in_sources[i]] + in_weights[i]
            if candidate > length:
                length, source = candidate, in_sources[i]
        if length >= 0:
            best[vertex], before[vertex] = length, source
    return best, before


@njit(cache=True)
def reach(offsets: Array, neighbours: Array, starts: Array) -> Array:
    """Return a mask of the vertices that can be reached from `starts`, these included."""
    seen = np.zeros(len(offsets) - 1, np.bool_)
    stack = np.empty(len(offsets), np.int32)
    height = 0
    for start in starts:
        if not seen[start]:
            seen[start] = True
            stack[height] = start
            height += 1
    while height:
        height -= 1
        vertex = stack[height]
        for i in range(offsets[vertex], offsets[vertex + 1]):
            neighbour = neighbours[i]
            if not seen[neighbour]:
                seen[neighbour] = True
                stack[height] = neighbour
                height += 1
    return seen


@njit(cache=True)
def redundant_edges(order: Array, offsets: Array, targets: Array) -> Array:
    """Return a mask of the edges u → v beside which another path leads from u to v.

    From each vertex with a choice, one search forward from its successors, never beyond the place in the order of the
    last of them that could be met. A successor that is met can be reached through another one.
    """
    count = len(order)
    place = np.empty(count, np.int32)
    place[order] = np.arange(count).astype(np.int32)
    indegree = np.zeros(count, np.int32)
    for target in targets:
        indegree[target] += 1
    redundant = np.zeros(len(targets), np.bool_)
    met, sought = np.full(count, -1, np.int32), np.full(count, -1, np.int32)  # by the search from which vertex
    stack = np.empty(count, np.int32)
    for vertex in range(count):
        first, last = offsets[vertex], offsets[vertex + 1]
        bound, left = -1, 0
        for i in range(first, last):
            if last - first > 1 and indegree[targets[i]] > 1:
                sought[targets[i]] = vertex
                bound = max(bound, place[targets[i]])
                left += 1
        if left:
            _meet(vertex, left, bound, offsets, targets, place, met, sought, stack)
            for i in range(first, last):
                redundant[i] = met[targets[i]] == vertex
    return redundant


@njit(cache=True)
def _meet(  # noqa: PLR0913, PLR0917 - one vertex's part of the arrays above
    vertex: int, left: int, bound: int, offsets: Array, targets: Array, place: Array, met: Array, sought: Array,
    stack: Array,
) -> None:  # fmt: skip
    """Mark what successors of `vertex` reach up to the place `bound`, until all `left` vertices sought are met."""
    for first in range(offsets[vertex], offsets[vertex + 1]):
        if place[targets[first]] >= bound or met[targets[first]] == vertex:
            continue
        stack[0], height = targets[first], 1
        while height:
            height -= 1
            at = stack[height]
            for i in range(offsets[at], offsets[at + 1]):
                target = targets[i]
                if place[target] > bound or met[target] == vertex:
                    continue
                met[target] = vertex
                left -= sought[target] == vertex
                if not left:
                    return
                stack[height] = target
                height += 1


@njit(cache=True)
def path_to(before: Array, vertex: int) -> Array:
    """Return the vertices of the path to `vertex`, given the vertex before each as `longest_path` gives it."""
    path = [vertex]
    while before[vertex] != vertex:
        vertex = before[vertex]
        path.append(vertex)
    return np.array(path[::-1])
