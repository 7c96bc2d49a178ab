"""Vertices leave a DAG one by one while that adds no edges. Compiled by numba.

Weights, bounds and what one vector covers are those of `contraction.vectors`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit
from htagraph.core.contraction.net import MAX_PAIRS, NONE, Net, add, copy, insert, remove
from htagraph.core.contraction.vectors import covers

__all__ = ["shrink"]

Array: TypeAlias = npt.NDArray[Any]

_MAX_SEARCH = 64
"""How many edges of a vertex are searched for one that leads to another vertex. Chosen: it bounds the work for each
vertex. Doubled, a few vertices beside hubs leave too."""


@njit(no_cpython_wrapper=True)
def _among(number: int, numbers: Array, count: int) -> bool:
    found = False
    for i in range(count):
        found |= numbers[i] == number
    return found


@njit(cache=True)
def shrink(net: Net, terminal: Array, bounds: Array) -> int:
    """Take away every vertex that is no terminal if that adds no edges; return how many pairs of edges were looked at.

    Paths over such a vertex become edges, unless an edge beside them covers them. Each time, the vertices beside it
    are tried again.
    """
    count = len(terminal)
    queue, queued = np.empty(count, np.int32), np.empty(count, np.bool_)
    for i in range(count):
        queue[i], queued[i] = i, not terminal[i]
    first, waiting = 0, count
    pairs = _Pairs(
        np.empty(MAX_PAIRS, np.int32), np.empty(MAX_PAIRS, np.int32),
        np.empty((MAX_PAIRS, len(bounds)), np.int64), np.empty(MAX_PAIRS * _MAX_SEARCH, np.int32),
        np.zeros(1, np.int64),
    )  # fmt: skip
    around = np.empty(2 * MAX_PAIRS + 2, np.int32)
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
    return int(pairs.work[0])


class _Pairs(NamedTuple):
    """Paths of two edges over one vertex, and the edges that they cover."""

    source: Array
    target: Array
    weight: Array
    covered: Array
    work: Array
    """How many pairs of edges were looked at so far, as an array of one."""


@njit(no_cpython_wrapper=True)
def _beside(net: Net, vertex: int, around: Array) -> int:
    """Write the ends of all edges of a vertex to `around`; return their number, or -1 if it has too many pairs."""
    if net.in_degree[vertex] * net.out_degree[vertex] > MAX_PAIRS:
        return -1
    if net.in_degree[vertex] + net.out_degree[vertex] > len(around):
        return -1
    count = 0
    edge = net.first_in[vertex]
    while edge >= 0:
        around[count] = net.source[edge]
        count += 1
        edge = net.next_in[edge]
    edge = net.first_out[vertex]
    while edge >= 0:
        around[count] = net.target[edge]
        count += 1
        edge = net.next_out[edge]
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
            pairs.source[i] = NONE
            continue
        added, covered = added + 1, found
    if added > covered + net.in_degree[vertex] + net.out_degree[vertex]:
        return False
    _replace(net, vertex, pairs, count, covered)
    return True


@njit(no_cpython_wrapper=True)
def _replace(net: Net, vertex: int, pairs: _Pairs, count: int, covered: int) -> None:
    """Take away the edges of a vertex and those that are covered, and add the paths over it."""
    for i in range(covered):
        if net.source[pairs.covered[i]] >= 0:
            remove(net, pairs.covered[i])
    while net.first_in[vertex] >= 0:
        remove(net, net.first_in[vertex])
    while net.first_out[vertex] >= 0:
        remove(net, net.first_out[vertex])
    for i in range(count):
        if pairs.source[i] >= 0:
            insert(net, pairs.source[i], pairs.target[i], pairs.weight, i)


@njit(no_cpython_wrapper=True)
def _paths_over(net: Net, vertex: int, pairs: _Pairs, bounds: Array) -> int:
    """Write the paths of two edges over a vertex to `pairs`, less those that others cover; return their number."""
    count = 0
    come = net.first_in[vertex]
    while come >= 0:
        go = net.first_out[vertex]
        while go >= 0:
            source, target = net.source[come], net.target[go]
            pairs.source[count], pairs.target[count] = source, target
            add(pairs.weight, count, net.weight, come, go)
            count = _with_the_last(count, pairs, bounds)
            go = net.next_out[go]
        come = net.next_in[come]
    return count


@njit(no_cpython_wrapper=True)
def _with_the_last(count: int, pairs: _Pairs, bounds: Array) -> int:
    """Return how many of `count` paths and one more are left without those that others between the same ends cover."""
    kept = 0
    for i in range(count):
        pairs.work[0] += 1
        parallel = pairs.source[i] == pairs.source[count] and pairs.target[i] == pairs.target[count]
        if parallel and covers(pairs.weight, i, pairs.weight, count, bounds):
            return count
        if parallel and covers(pairs.weight, count, pairs.weight, i, bounds):
            continue
        if kept < i:
            pairs.source[kept], pairs.target[kept] = pairs.source[i], pairs.target[i]
            copy(pairs.weight, kept, pairs.weight, i)
        kept += 1
    if kept < count:
        pairs.source[kept], pairs.target[kept] = pairs.source[count], pairs.target[count]
        copy(pairs.weight, kept, pairs.weight, count)
    return kept + 1


@njit(no_cpython_wrapper=True)
def _compare(net: Net, number: int, pairs: _Pairs, covered: int, bounds: Array) -> int:
    """Return how many edges are covered with those that one path covers, -1 if an edge covers it, -2 if there are many.

    The edges that it covers are added to the `covered` ones.
    """
    source, target = pairs.source[number], pairs.target[number]
    outward = net.out_degree[source] <= net.in_degree[target]
    if min(net.out_degree[source], net.in_degree[target]) > _MAX_SEARCH:
        return -2
    edge = net.first_out[source] if outward else net.first_in[target]
    while edge >= 0:
        pairs.work[0] += 1
        if (net.target[edge] == target) if outward else (net.source[edge] == source):
            if covers(net.weight, edge, pairs.weight, number, bounds):
                return -1
            if covers(pairs.weight, number, net.weight, edge, bounds) and not _among(edge, pairs.covered, covered):
                pairs.covered[covered] = edge
                covered += 1
        edge = net.next_out[edge] if outward else net.next_in[edge]
    return covered
