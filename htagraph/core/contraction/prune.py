"""Edges that other paths cover leave a DAG. Compiled by numba.

Weights, bounds and what one vector covers are those of `contraction.vectors`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit
from htagraph.core.contraction.net import FIRST_OUT, NEXT_OUT, NONE, OUT_DEGREE, TARGET, Net, remove
from htagraph.core.contraction.vectors import add, cover_together, covers

__all__ = ["prune"]


_MAX_SEARCH = 64
"""How many edges of a vertex are tried as the second one of a path. Chosen: it bounds the work for each edge. Doubled,
a few edges beside hubs leave too."""
_MAX_NEAR = 4
"""How many edges on either side, in an order of parallel ones, may cover one of them together. Chosen: neighbours do
where ways differ gradually. Doubled, a few more of the parallel edges leave in four times the time."""


def prune(net: Net, bounds: Array) -> int:
    """Take away every edge that a path of two other edges covers; return how many pairs of edges were looked at.

    Where a vertex has very many edges, not all of its paths are tried.
    """
    lists = _Lists(
        np.full(len(net.vertex), NONE, np.int32), np.full(len(net.edge), NONE, np.int32),
        np.empty((3, net.vertex[:, OUT_DEGREE].max(initial=0)), np.int32),
    )  # fmt: skip
    return int(_prune(net, for_reading(bounds, np.int64), lists, np.empty((1, len(bounds)), np.int64)))


class _Lists(NamedTuple):
    """Edges of the vertex at hand, by where they lead."""

    direct: Array
    """By target, an edge to it."""
    parallel: Array
    """By edge, the next one between the same two vertices."""
    rows: Array
    """Parallel edges in an order, and the place before and after each; it has room for those of any vertex."""


@njit(cache=True)
def _prune(net: Net, bounds: Array, lists: _Lists, longer: Array) -> int:
    direct, parallel = lists.direct, lists.parallel
    work = 0
    for vertex in range(len(net.vertex)):
        if net.vertex[vertex, OUT_DEGREE] < 2:
            continue
        edge = net.vertex[vertex, FIRST_OUT]
        while edge >= 0:
            parallel[edge] = direct[net.edge[edge, TARGET]]
            direct[net.edge[edge, TARGET]] = edge
            edge = net.edge[edge, NEXT_OUT]
        edge = net.vertex[vertex, FIRST_OUT]
        while edge >= 0:
            go = (
                net.vertex[net.edge[edge, TARGET], FIRST_OUT]
                if net.vertex[net.edge[edge, TARGET], OUT_DEGREE] <= _MAX_SEARCH
                else NONE
            )
            while go >= 0:
                work += 1
                beside = direct[net.edge[go, TARGET]]
                if beside >= 0:
                    add(longer, 0, net.weight, edge, go)
                    direct[net.edge[go, TARGET]] = _without_covered(net, beside, parallel, longer, bounds)
                go = net.edge[go, NEXT_OUT]
            edge = net.edge[edge, NEXT_OUT]
        work += _clear(net, vertex, lists)
        if len(bounds) > 1 and net.vertex[vertex, OUT_DEGREE] > 2:
            work += _prune_parallel(net, vertex, lists, bounds)
    return work


@njit(no_cpython_wrapper=True)
def _prune_parallel(net: Net, vertex: int, lists: _Lists, bounds: Array) -> int:
    """Take away edges from a vertex that two others between the same vertices cover together; return the work."""
    direct, parallel = lists.direct, lists.parallel
    edge, work = net.vertex[vertex, FIRST_OUT], 0
    while edge >= 0:
        parallel[edge] = direct[net.edge[edge, TARGET]]
        direct[net.edge[edge, TARGET]] = edge
        edge = net.edge[edge, NEXT_OUT]
    edge = net.vertex[vertex, FIRST_OUT]
    while edge >= 0:
        at, count = direct[net.edge[edge, TARGET]], 0
        while at >= 0:
            at, count = parallel[at], count + 1
        if count > 2:
            at = direct[net.edge[edge, TARGET]]
            for i in range(count):
                lists.rows[0, i], at = at, parallel[at]
            _sort_by_widest(net, lists.rows, count)
            work += _mark_covered_by_two(net, lists, count, bounds)
        direct[net.edge[edge, TARGET]] = NONE  # each group once
        edge = net.edge[edge, NEXT_OUT]
    return work + _clear(net, vertex, lists)


@njit(no_cpython_wrapper=True)
def _sort_by_widest(net: Net, rows: Array, count: int) -> None:
    """Bring edges into the order of that component of their weights that differs most between them."""
    widest, spread = 0, np.int64(-1)
    for i in range(net.weight.shape[1]):
        low = high = net.weight[rows[0, 0], i]
        for j in range(count):
            weight = net.weight[rows[0, j], i]
            low, high = weight if weight < low else low, weight if weight > high else high
        if high - low > spread:
            widest, spread = i, high - low
    step = count // 2
    while step:  # a shell sort: argsort takes seconds to compile
        for i in range(step, count):
            row, at = rows[0, i], i
            while at >= step and net.weight[rows[0, at - step], widest] > net.weight[row, widest]:
                rows[0, at] = rows[0, at - step]
                at -= step
            rows[0, at] = row
        step //= 2


@njit(no_cpython_wrapper=True)
def _mark_covered_by_two(net: Net, lists: _Lists, count: int, bounds: Array) -> int:
    """Mark the edges that two of those near them in an order cover together; return how many pairs were compared."""
    rows, compared = lists.rows, 0
    for i in range(count):
        rows[1, i], rows[2, i] = i - 1, i + 1
    for i in range(1, count - 1):
        first, covered = rows[1, i], False
        for _ in range(_MAX_NEAR):
            second = rows[2, i]
            for _ in range(_MAX_NEAR):
                if covered or first < 0 or second == count:
                    break
                compared += 1
                covered = cover_together(net.weight, rows[0, first], rows[0, second], rows[0, i], bounds)
                second = rows[2, second]
            if covered or first < 0:
                break
            first = rows[1, first]
        if covered:
            lists.parallel[rows[0, i]] = -2
            rows[2, rows[1, i]], rows[1, rows[2, i]] = rows[2, i], rows[1, i]
    return compared


@njit(no_cpython_wrapper=True)
def _without_covered(net: Net, edge: int, parallel: Array, longer: Array, bounds: Array) -> int:
    """Return the first of parallel edges that a path does not cover; the others are marked and leave the list."""
    first, before = NONE, NONE
    while edge >= 0:
        following = parallel[edge]
        if covers(longer, 0, net.weight, edge, bounds):
            parallel[edge] = -2
        else:
            if before >= 0:
                parallel[before] = edge
            else:
                first = edge
            before = edge
        edge = following
    if before >= 0:
        parallel[before] = NONE
    return first


@njit(no_cpython_wrapper=True)
def _clear(net: Net, vertex: int, lists: _Lists) -> int:
    """Take away the marked edges of a vertex, and forget its targets; return how many edges it had."""
    count = 0
    edge = net.vertex[vertex, FIRST_OUT]
    while edge >= 0:
        following = net.edge[edge, NEXT_OUT]
        lists.direct[net.edge[edge, TARGET]] = NONE
        if lists.parallel[edge] == -2:
            remove(net, edge)
        edge = following
        count += 1
    return count
