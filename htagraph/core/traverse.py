"""Algorithms on a DAG given as arrays: order, times, paths, reachability, slack. Compiled by numba, cached on disk.

A graph is ``(offsets, neighbours)``: the neighbours of vertex v are ``neighbours[offsets[v]:offsets[v + 1]]``. This
module knows arrays only, so that graph code and its checks can both use it.

What the arguments are, here and in `core.runs` and `core.contraction`:
- `order`: the vertices in topological order
- `in_edges` (or `edges`) and `in_offsets` (or `offsets`): the numbers of the edges that end in each vertex (or leave
  it), and where the entries of each vertex begin among them
- `source` and `target`: the vertices where each edge begins and ends, by edge number
- `lag`: how long after its source each edge allows its target
- `gap`: how much later than its predecessors allow each vertex happens
- `head`: when each vertex without predecessors happens; not read for other vertices
- `time`: when each vertex happens
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints
from htagraph.core.compiled import for_reading, njit
from htagraph.core.counting import offsets_by_key

__all__ = [
    "avoiding", "chain_order", "climb", "counting_order", "deciding", "detours", "last_on_path", "latest", "levels",
    "longest_path", "reach", "redundant_edges", "schedule", "topological_order", "walk_back",
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
    """Return when each vertex happens: the latest moment its predecessors allow, plus its gap."""
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


def chain_order(offsets: Array, targets: Array) -> Array:
    """Return the vertices in a topological order that follows one chain as far as it goes, then takes up the next.

    Kahn's algorithm with a stack. A pass over the vertices in this order reads most moments right after it wrote them;
    with a queue (`traverse.topological_order`) it takes turns between all threads and streams of all ranks, which takes
    five times as long in a job of eight. If the graph has a cycle, the vertices on it and behind it are missing.
    """
    count = len(offsets) - 1
    waiting = np.bincount(targets, minlength=count).astype(np.int32)
    order, stack = np.empty(count, np.int32), np.empty(count, np.int32)
    first = np.flatnonzero(waiting == 0)[::-1]
    stack[: len(first)] = first
    filled = _follow(for_reading(offsets, np.int64), for_reading(targets, np.int32), waiting, order, stack, len(first))
    return order[:filled]


@njit(cache=True, nogil=True)
def _follow(offsets: Array, targets: Array, waiting: Array, order: Array, stack: Array, height: int) -> int:
    """Write the vertices in order, and return how many; the first `height` of the stack wait for none."""
    filled = 0
    while height:
        height -= 1
        vertex = stack[height]
        order[filled] = vertex
        filled += 1
        for i in range(offsets[vertex + 1] - 1, offsets[vertex] - 1, -1):
            target = targets[i]
            waiting[target] -= 1
            if waiting[target] == 0:
                stack[height] = target
                height += 1
    return filled


def deciding(
    in_offsets: Array, in_edges: Array, source: Array, lag: Array, preferred: Array, time: Array
) -> tuple[npt.NDArray[np.int32], Ints]:
    """Return, for each vertex, the edge that allows it last (-1 if none enters), and how much later it happens, ns.

    On ties a preferred edge decides; among several, and where there is none, the one that stands first.

    Example:
        >>> edges = np.array([0, 0]), np.array([5, 7]), np.array([False, False])
        >>> at, later = deciding(np.array([0, 0, 2]), np.array([0, 1]), *edges, np.array([0, 10]))
        >>> at.tolist(), later.tolist()
        ([-1, 1], [0, 3])
    """
    edge, later = np.empty(len(time), np.int32), np.empty(len(time), np.int64)
    edges, begins = for_reading(in_edges, np.int32), for_reading(source, np.int32)
    first, lags, moments = (for_reading(each, np.int64) for each in (in_offsets, lag, time))
    _decide(edge, later, first, edges, begins, lags, for_reading(preferred, np.bool_), moments)
    return edge, later


@njit(cache=True, nogil=True)
def _decide(  # noqa: PLR0913, PLR0917 - as `deciding`
    decides: Array, later: Array, in_offsets: Array, in_edges: Array, source: Array, lag: Array, preferred: Array,
    time: Array,
) -> None:  # fmt: skip
    for vertex in range(len(time)):
        first, last = in_offsets[vertex], in_offsets[vertex + 1]
        if first == last:
            decides[vertex], later[vertex] = -1, 0
            continue
        best = in_edges[first]
        latest = time[source[best]] + lag[best]
        for i in range(first + 1, last):
            edge = in_edges[i]
            allowed = time[source[edge]] + lag[edge]
            if allowed > latest or (allowed == latest and preferred[edge] and not preferred[best]):
                best, latest = edge, allowed
        decides[vertex], later[vertex] = best, time[vertex] - latest


@njit(cache=True)
def last_on_path(order: Array, in_offsets: Array, in_sources: Array, path: Array) -> Array:
    """Return for each vertex the largest j for which path[j] is the vertex or reaches it; -1 if there is none."""
    label = np.full(len(order), -1, np.int64)
    label[path] = np.arange(len(path))
    for vertex in order:
        for i in range(in_offsets[vertex], in_offsets[vertex + 1]):
            label[vertex] = max(label[vertex], label[in_sources[i]])
    return label


@njit(cache=True)
def avoiding(  # noqa: PLR0913, PLR0917 - a graph, its schedule, and a path
    path: Array, label: Array, offsets: Array, targets: Array, lags: Array, gap: Array, time: Array, late: Array,
    end: int,
) -> Array:  # fmt: skip
    """Return for each edge i of a longest path, path[i] → path[i + 1], when the job would end without that edge.

    A path that avoids edge i either crosses, by another edge x → y with label(x) <= i < label(y), from the vertices
    that path[i + 1] does not reach to those that it reaches, or it ends before. Its part up to x and its part from y
    cannot use edge i, so the longest path to x and the longest from y bound it: ``time`` and ``late`` give both. Each x
    → y is a candidate for a range of edges i; a segment tree of maxima combines them in O(log n) each. `label` is the
    result of `last_on_path`, `time` of `schedule`, `late` of `latest`; `end` is the latest moment.
    """
    count = len(path) - 1
    tree = np.full(2 * max(count, 1), np.iinfo(np.int64).min, np.int64)
    # the latest moment among the vertices that path[i] reaches and path[i + 1] does not: they stay without edge i
    ended = np.full(count, np.iinfo(np.int64).min, np.int64)
    for x in range(len(time)):
        low = max(label[x], 0)
        if low >= count:
            continue
        ended[low] = max(ended[low], time[x])
        for edge in range(offsets[x], offsets[x + 1]):
            y = targets[edge]
            on_path = path[low] == x and path[low + 1] == y
            if label[y] > low and not on_path:
                _raise(tree, count, low, label[y] - 1, time[x] + lags[edge] + gap[y] + end - late[y])
    for node in range(1, count):
        tree[2 * node] = max(tree[2 * node], tree[node])
        tree[2 * node + 1] = max(tree[2 * node + 1], tree[node])
    best = tree[count : 2 * count]
    for i in range(count):
        ended[i] = max(ended[i], ended[max(i - 1, 0)])
        best[i] = max(best[i], ended[i])
    return best


@njit(cache=True)
def _raise(tree: Array, count: int, low: int, high: int, value: int) -> None:
    """Raise the leaves `low` to `high` (both included) of a segment tree of maxima to at least `value`."""
    low += count
    high += count + 1
    while low < high:
        if low & 1:
            tree[low] = max(tree[low], value)
            low += 1
        if high & 1:
            high -= 1
            tree[high] = max(tree[high], value)
        low >>= 1
        high >>= 1


@njit(cache=True)
def detours(  # noqa: PLR0913, PLR0917 - a graph, a path, and what to look for
    before: Array, sources: Array, weight: Array, on_path: Array, candidates: Array, own: Array, least: int,
    count: int,
) -> Array:  # fmt: skip
    """Return which candidates (positions in `candidates`) begin a detour: a path of their own back to the longest path.

    From each candidate, the edges `before` are followed back to the longest path. A candidate counts if the edges
    followed, and its own, weigh at least `least`, and if they do not run into the detour of an earlier candidate. The
    search ends after `count` detours. Candidates come with the most wanted first, each with the weight of its `own`
    edge, by which it returns to the longest path.
    """
    detour_of = np.where(on_path, 0, -1).astype(np.int32)  # 0: the longest path, n: the n-th detour, -1: none yet
    chosen, filled = np.empty(count, np.int64), 0
    for i in range(len(candidates)):
        if filled == count:
            break
        at, total, number, met = candidates[i], own[i], filled + 1, -1
        while met < 0:
            met = detour_of[at]
            if met < 0:
                detour_of[at] = number
                total += weight[at]
                if before[at] < 0:
                    met = 0  # it begins at a vertex without predecessors, and so meets no other detour
                else:
                    at = sources[before[at]]
        if total >= least and met == 0:
            chosen[filled] = i
            filled += 1
            continue
        at = candidates[i]
        while detour_of[at] == number:  # give the vertices to the path or detour that the walk ran into
            detour_of[at] = met
            if before[at] >= 0:
                at = sources[before[at]]
    return chosen[:filled]


@njit(cache=True, nogil=True)
def climb(above: Array, wanted: Array, rows: Array, levels: int) -> Array:
    """Return, for each row, the row itself or its nearest ancestor that is wanted; -1 if there is none.

    Rows that are not there after `levels` levels have the ancestor that they came to. A row of -1 gives -1.
    """
    nearest = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        at = rows[i]
        for _ in range(levels):
            if at < 0 or wanted[at]:
                break
            at = above[at]
        nearest[i] = at
    return nearest
