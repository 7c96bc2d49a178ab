"""What lies beside a longest path of a DAG given as arrays, as in `traverse`. Compiled by numba, cached on disk."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["avoiding", "detours", "last_on_path"]


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
    cannot use edge i, so the longest path to x and the longest from y bound it: ``time`` and ``late`` give both. Each
    x → y is a candidate for a range of edges i; a segment tree of maxima combines them in O(log n) each.

    Args:
        path: the vertices of a longest path.
        label: result of `last_on_path`.
        offsets: where the edges that leave each vertex begin.
        targets: the vertex where each edge ends.
        lags: how long after its source each edge allows its target.
        gap: how much later than its predecessors allow each vertex happens.
        time: result of `schedule`.
        late: result of `latest`.
        end: the latest moment in `time`.
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
    search ends after `count` detours.

    Args:
        before: the edge by which each vertex is reached, -1 for none.
        sources: the vertex where each edge begins.
        weight: the weight of the edge before each vertex.
        on_path: mask of the vertices of the longest path.
        candidates: vertices, the most wanted first.
        own: the weight of the edge by which each candidate returns to the longest path.
        least: the least weight of a detour.
        count: the most detours to return.
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
