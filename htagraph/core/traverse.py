"""Algorithms on a DAG given as arrays: order, times, paths, reachability. Compiled by numba, cached on disk.

A graph is ``(offsets, neighbours)``: the neighbours of vertex v are ``neighbours[offsets[v]:offsets[v + 1]]``. This
module knows arrays only, so that graph code and its checks can both use it. In the order of the file:
- order: `counting_order`, `topological_order`, `levels`
- times: `schedule` (earliest), `latest`
- paths: `longest_path`, `path_to`, `walk_back`
- reachability: `reach`, `redundant_edges`

What lies beside a longest path is in `beside_path`.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit
from htagraph.core.counting import offsets_by_key

__all__ = [
    "counting_order", "latest", "levels", "longest_path", "path_to", "reach", "redundant_edges", "schedule",
    "topological_order", "walk_back",
]  # fmt: skip


def counting_order(keys: Array, count: int) -> tuple[Array, Array]:
    """Return (offsets of each key, stable order by key) for integer keys in [0, count)."""
    offsets = offsets_by_key(keys, count)
    order = np.empty(len(keys), np.int32)
    _place(for_reading(keys, np.int32), offsets[:-1].copy(), order)
    return offsets, order


@njit(cache=True, nogil=True)
def _place(keys: Array, place: Array, order: Array) -> None:
    """Write the number of each key where the next one with that key goes."""
    for i in range(len(keys)):
        key = keys[i]
        order[place[key]] = i
        place[key] += 1


def topological_order(offsets: Array, targets: Array) -> Array:
    """Return the vertices in topological order: each after all its predecessors.

    Kahn's algorithm with a first-in-first-out queue, so the order is that of networkx's ``topological_sort``. If the
    graph has a cycle, the vertices on it and behind it are missing.
    """
    waiting, order = np.zeros(len(offsets) - 1, np.int32), np.empty(len(offsets) - 1, np.int32)
    return order[: _write_order(order, waiting, for_reading(offsets, np.int64), for_reading(targets, np.int32))]


@njit(cache=True)
def _write_order(order: Array, waiting: Array, offsets: Array, targets: Array) -> int:
    """Write the vertices that are on no cycle and behind none; return how many there are."""
    for target in targets:
        waiting[target] += 1
    filled = 0
    for vertex in range(len(waiting)):
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
    return filled


@njit(cache=True)
def levels(order: Array, in_offsets: Array, in_sources: Array) -> Array:
    """Return for each vertex the number of edges on the longest path to it."""
    level = np.zeros(len(order), np.int32)
    for vertex in order:
        for i in range(in_offsets[vertex], in_offsets[vertex + 1]):
            level[vertex] = max(level[vertex], level[in_sources[i]] + 1)
    return level


def schedule(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, in_offsets: Array, in_edges: Array, source: Array, lag: Array, gap: Array, head: Array
) -> Array:
    """Return when each vertex happens: the latest moment its predecessors allow, plus its gap.

    Args:
        order: the vertices in topological order.
        in_offsets: where the entries of each vertex begin in `in_edges`.
        in_edges: the numbers of the edges that end in each vertex.
        source: the vertex where each edge begins, by edge number.
        lag: how long after its source each edge allows its target, by edge number.
        gap: how much later than its predecessors allow each vertex happens.
        head: when each vertex without predecessors happens; not read for other vertices.
    """
    time = np.empty(len(order), np.int64)
    vertices, edges, begins = (for_reading(each, np.int32) for each in (order, in_edges, source))
    _set_times(time, vertices, edges, begins, *(for_reading(each, np.int64) for each in (in_offsets, lag, gap, head)))
    return time


@njit(cache=True, nogil=True)
def _set_times(  # noqa: PLR0913, PLR0917 - as `schedule`
    time: Array, order: Array, in_edges: Array, source: Array, in_offsets: Array, lag: Array, gap: Array, head: Array
) -> None:
    for vertex in order:
        first, last = in_offsets[vertex], in_offsets[vertex + 1]
        if first == last:
            time[vertex] = head[vertex]
            continue
        edge = in_edges[first]
        allowed = time[source[edge]] + lag[edge]
        for i in range(first + 1, last):
            edge = in_edges[i]
            after = time[source[edge]] + lag[edge]
            if after > allowed:  # max would be compiled too
                allowed = after
        time[vertex] = allowed + gap[vertex]


@njit(cache=True)
def latest(order: Array, offsets: Array, targets: Array, lags: Array, gap: Array, end: int) -> Array:
    """Return the latest moment each vertex may happen without delaying the graph's `end`.

    The counterpart of `schedule`, backwards, with the same lags and gaps.
    """
    late = np.full(len(order), end, np.int64)
    for i in range(len(order) - 1, -1, -1):
        vertex = order[i]
        for edge in range(offsets[vertex], offsets[vertex + 1]):
            target = targets[edge]
            late[vertex] = min(late[vertex], late[target] - gap[target] - lags[edge])
    return late


@njit(cache=True)
def longest_path(order: Array, in_offsets: Array, in_sources: Array, in_weights: Array) -> tuple[Array, Array]:
    """Return (weight of the heaviest path that ends in each vertex, the vertex before it on that path).

    As networkx's ``dag_longest_path`` does it: a path may begin at any vertex; where all paths to a vertex have
    negative weight, its path begins there and the vertex before it is itself; on ties the first edge wins.
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
def path_to(before: Array, vertex: int) -> Array:
    """Return the vertices of the path to `vertex`, first to last; `before` is the second result of `longest_path`."""
    path = [vertex]
    while before[vertex] != vertex:
        vertex = before[vertex]
        path.append(vertex)
    return np.array(path[::-1])


def walk_back(before: Array, sources: Array, time: Array, vertex: int, start: int) -> Array:
    """Return the vertices of the path to `vertex`, first to last, following the edge `before` each vertex (-1: none).

    The walk ends at the first vertex it meets that happens at or before `start`, or that has no edge before it.
    """
    path = np.empty(len(time), np.int64)  # memory is taken by what is written alone
    edges, begins = for_reading(before, np.int32), for_reading(sources, np.int32)
    length = _write_back(path, edges, begins, for_reading(time, np.int64), vertex, start)
    return path[:length][::-1].copy()


@njit(cache=True, nogil=True)
def _write_back(path: Array, before: Array, sources: Array, time: Array, vertex: int, start: int) -> int:
    path[0], length = vertex, 1
    while time[vertex] > start and before[vertex] >= 0:
        vertex = sources[before[vertex]]
        path[length] = vertex
        length += 1
    return length


def reach(offsets: Array, neighbours: Array, starts: Array) -> Array:
    """Return a mask of the vertices that can be reached from `starts`, including `starts` themselves."""
    seen = np.zeros(len(offsets) - 1, np.bool_)
    stack = np.empty(len(offsets), np.int32)
    starts = np.unique(starts)
    seen[starts] = True
    stack[: len(starts)] = starts
    _spread(for_reading(offsets, np.int64), for_reading(neighbours, np.int32), seen, stack, len(starts))
    return seen


@njit(cache=True, nogil=True)
def _spread(offsets: Array, neighbours: Array, seen: Array, stack: Array, height: int) -> None:
    """Mark the vertices that are reached from the first `height` of the stack, which are marked."""
    while height:
        height -= 1
        vertex = stack[height]
        for i in range(offsets[vertex], offsets[vertex + 1]):
            neighbour = neighbours[i]
            if not seen[neighbour]:
                seen[neighbour] = True
                stack[height] = neighbour
                height += 1


@njit(cache=True)
def redundant_edges(order: Array, offsets: Array, targets: Array) -> Array:
    """Return a mask of the edges u → v for which another path leads from u to v.

    For each vertex with several successors, search forward from those successors: one that the search meets can be
    reached through another one. The search stops at the place, in topological order, of the last successor that it
    could still meet.
    """
    count = len(order)
    place = np.empty(count, np.int32)
    place[order] = np.arange(count).astype(np.int32)
    indegree = np.zeros(count, np.int32)
    for target in targets:
        indegree[target] += 1
    redundant = np.zeros(len(targets), np.bool_)
    # for each vertex, the start of the last search that met it, and of the last search that looked for it
    met, sought = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
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
    """Mark the vertices that successors of `vertex` reach, up to place `bound` or until all `left` sought are met."""
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
