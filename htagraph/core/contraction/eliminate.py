"""Vertices leave a DAG one by one while that adds no edges. Compiled by numba.

Weights, bounds and what one vector covers are those of `contraction.vectors`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit
from htagraph.core.contraction.net import (
    FIRST_IN,
    FIRST_OUT,
    IN_DEGREE,
    MAX_PAIRS,
    NEXT_IN,
    NEXT_OUT,
    NONE,
    OUT_DEGREE,
    SOURCE,
    TARGET,
    Net,
    insert,
    remove,
)  # fmt: skip
from htagraph.core.contraction.vectors import add, copy, covers

__all__ = ["shrink"]


_MAX_SEARCH = 64
"""How many edges of a vertex are searched for one that leads to another vertex. Chosen: it bounds the work for each
vertex. Doubled, a few vertices beside hubs leave too."""


@njit(no_cpython_wrapper=True)
def _among(number: int, numbers: Array, count: int) -> bool:
    found = False
    for i in range(count):
        found |= numbers[i] == number
    return found


def shrink(net: Net, terminal: Array, bounds: Array) -> int:
    """Take away every vertex that is no terminal if that adds no edges; return how many pairs of edges were looked at.

    Paths over such a vertex become edges, unless an edge beside them covers them. Each time, the vertices beside it
    are tried again.
    """
    terminal = for_reading(terminal, np.bool_)
    pairs = _Pairs(
        np.empty((MAX_PAIRS, 2), np.int32), np.empty((MAX_PAIRS, len(bounds)), np.int64),
        np.empty(MAX_PAIRS * _MAX_SEARCH, np.int32), np.zeros(1, np.int64),
    )  # fmt: skip
    queue, around = np.arange(len(terminal), dtype=np.int32), np.empty(2 * MAX_PAIRS + 2, np.int32)
    _shrink(net, terminal, for_reading(bounds, np.int64), pairs, queue, ~terminal, around)
    return int(pairs.work[0])


@njit(cache=True)
def _shrink(  # noqa: PLR0913, PLR0917 - what `shrink` has, and memory to work in
    net: Net, terminal: Array, bounds: Array, pairs: _Pairs, queue: Array, queued: Array, around: Array
) -> None:  # fmt: skip
    count = len(terminal)
    first, waiting = 0, count
    while waiting:
        vertex = queue[first]
        first, waiting = (first + 1) % count, waiting - 1
        if not queued[vertex]:
            continue
        queued[vertex] = False
        beside = _beside(net, vertex, around)
        if beside < 0 or not _leaves(net, vertex, pairs, bounds):
            continue
        for i in range(beside):
            if not terminal[around[i]] and not queued[around[i]]:
                queued[around[i]] = True
                queue[(first + waiting) % count] = around[i]
                waiting += 1


class _Pairs(NamedTuple):
    """Paths of two edges over one vertex, and the edges that they cover."""

    ends: Array
    """Source and target of each."""
    weight: Array
    covered: Array
    work: Array
    """How many pairs of edges were looked at so far, as an array of one."""


@njit(no_cpython_wrapper=True)
def _beside(net: Net, vertex: int, around: Array) -> int:
    """Write the ends of all edges of a vertex to `around`; return their number, or -1 if it has too many pairs."""
    if net.vertex[vertex, IN_DEGREE] * net.vertex[vertex, OUT_DEGREE] > MAX_PAIRS:
        return -1
    if net.vertex[vertex, IN_DEGREE] + net.vertex[vertex, OUT_DEGREE] > len(around):
        return -1
    count = 0
    edge = net.vertex[vertex, FIRST_IN]
    while edge >= 0:
        around[count] = net.edge[edge, SOURCE]
        count += 1
        edge = net.edge[edge, NEXT_IN]
    edge = net.vertex[vertex, FIRST_OUT]
    while edge >= 0:
        around[count] = net.edge[edge, TARGET]
        count += 1
        edge = net.edge[edge, NEXT_OUT]
    return count


@njit(no_cpython_wrapper=True)
def _leaves(net: Net, vertex: int, pairs: _Pairs, bounds: Array) -> bool:
    """Take a vertex away if that adds no edges; return whether it was."""
    count = _paths_over(net, vertex, pairs, bounds)
    added, covered = 0, 0
    for i in range(count):
        found = _compare(net, i, pairs, covered, bounds)
        if found < -1:
            return False
        if found < 0:
            pairs.ends[i, 0] = NONE
            continue
        added, covered = added + 1, found
    if added > covered + net.vertex[vertex, IN_DEGREE] + net.vertex[vertex, OUT_DEGREE]:
        return False
    _replace(net, vertex, pairs, count, covered)
    return True


@njit(no_cpython_wrapper=True)
def _replace(net: Net, vertex: int, pairs: _Pairs, count: int, covered: int) -> None:
    """Take away the edges of a vertex and those that are covered, and add the paths over it."""
    for i in range(covered):
        if net.edge[pairs.covered[i], SOURCE] >= 0:
            remove(net, pairs.covered[i])
    while net.vertex[vertex, FIRST_IN] >= 0:
        remove(net, net.vertex[vertex, FIRST_IN])
    while net.vertex[vertex, FIRST_OUT] >= 0:
        remove(net, net.vertex[vertex, FIRST_OUT])
    for i in range(count):
        if pairs.ends[i, 0] >= 0:
            insert(net, pairs.ends[i, 0], pairs.ends[i, 1], pairs.weight, i)


@njit(no_cpython_wrapper=True)
def _paths_over(net: Net, vertex: int, pairs: _Pairs, bounds: Array) -> int:
    """Write the paths of two edges over a vertex to `pairs`, less those that others cover; return their number."""
    count = 0
    come = net.vertex[vertex, FIRST_IN]
    while come >= 0:
        go = net.vertex[vertex, FIRST_OUT]
        while go >= 0:
            pairs.ends[count, 0], pairs.ends[count, 1] = net.edge[come, SOURCE], net.edge[go, TARGET]
            add(pairs.weight, count, net.weight, come, go)
            count = _with_the_last(count, pairs, bounds)
            go = net.edge[go, NEXT_OUT]
        come = net.edge[come, NEXT_IN]
    return count


@njit(no_cpython_wrapper=True)
def _with_the_last(count: int, pairs: _Pairs, bounds: Array) -> int:
    """Return how many of `count` paths and one more are left without those that others between the same ends cover."""
    kept = 0
    for i in range(count):
        pairs.work[0] += 1
        parallel = pairs.ends[i, 0] == pairs.ends[count, 0] and pairs.ends[i, 1] == pairs.ends[count, 1]
        if parallel and covers(pairs.weight, i, pairs.weight, count, bounds):
            return count
        if parallel and covers(pairs.weight, count, pairs.weight, i, bounds):
            continue
        if kept < i:
            pairs.ends[kept, 0], pairs.ends[kept, 1] = pairs.ends[i, 0], pairs.ends[i, 1]
            copy(pairs.weight, kept, pairs.weight, i)
        kept += 1
    if kept < count:
        pairs.ends[kept, 0], pairs.ends[kept, 1] = pairs.ends[count, 0], pairs.ends[count, 1]
        copy(pairs.weight, kept, pairs.weight, count)
    return kept + 1


@njit(no_cpython_wrapper=True)
def _compare(net: Net, number: int, pairs: _Pairs, covered: int, bounds: Array) -> int:
    """Return how many edges are covered with those that one path covers, -1 if an edge covers it, -2 if there are many.

    The edges that it covers are added to the `covered` ones.
    """
    source, target = pairs.ends[number, 0], pairs.ends[number, 1]
    outward = net.vertex[source, OUT_DEGREE] <= net.vertex[target, IN_DEGREE]
    if (net.vertex[source, OUT_DEGREE] if outward else net.vertex[target, IN_DEGREE]) > _MAX_SEARCH:
        return -2
    edge = net.vertex[source, FIRST_OUT] if outward else net.vertex[target, FIRST_IN]
    while edge >= 0:
        pairs.work[0] += 1
        if (net.edge[edge, TARGET] == target) if outward else (net.edge[edge, SOURCE] == source):
            if covers(net.weight, edge, pairs.weight, number, bounds):
                return -1
            if covers(pairs.weight, number, net.weight, edge, bounds) and not _among(edge, pairs.covered, covered):
                pairs.covered[covered] = edge
                covered += 1
        edge = net.edge[edge, NEXT_OUT] if outward else net.edge[edge, NEXT_IN]
    return covered
