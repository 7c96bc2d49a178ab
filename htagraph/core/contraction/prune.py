"""Edges that other paths cover leave a DAG. Compiled by numba.

Weights, bounds and what one vector covers are those of `contraction.vectors`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit
from htagraph.core.contraction.net import NONE, Net, add, remove
from htagraph.core.contraction.vectors import cover_together, covers

__all__ = ["prune"]

Array: TypeAlias = npt.NDArray[Any]

_MAX_SEARCH = 64
"""How many edges of a vertex are tried as the second one of a path. Chosen: it bounds the work for each edge. Doubled,
a few edges beside hubs leave too."""
_MAX_NEAR = 4
"""How many edges on either side, in an order of parallel ones, may cover one of them together. Chosen: neighbours do
where ways differ gradually. Doubled, a few more of the parallel edges leave in four times the time."""


@njit(cache=True)
def prune(net: Net, bounds: Array) -> int:
    """Take away every edge that a path of two other edges covers; return how many pairs of edges were looked at.

    Where a vertex has very many edges, not all of its paths are tried.
    """
    count = len(net.first_out)
    direct = np.full(count, NONE, np.int32)  # by target, an edge from the vertex at hand
    parallel = np.full(len(net.source), NONE, np.int32)  # by edge, the next one between the same two vertices
    longer = np.empty((1, len(bounds)), np.int64)
    work = 0
    for vertex in range(count):
        if net.out_degree[vertex] < 2:
            continue
        edge = net.first_out[vertex]
        while edge >= 0:
            parallel[edge] = direct[net.target[edge]]
            direct[net.target[edge]] = edge
            edge = net.next_out[edge]
        edge = net.first_out[vertex]
        while edge >= 0:
            go = net.first_out[net.target[edge]] if net.out_degree[net.target[edge]] <= _MAX_SEARCH else NONE
            while go >= 0:
                work += 1
                beside = direct[net.target[go]]
                if beside >= 0:
                    add(longer, 0, net.weight, edge, go)
                    direct[net.target[go]] = _without_covered(net, beside, parallel, longer, bounds)
                go = net.next_out[go]
            edge = net.next_out[edge]
        work += _clear(net, vertex, direct, parallel)
        if len(bounds) > 1 and net.out_degree[vertex] > 2:
            work += _prune_parallel(net, vertex, direct, parallel, bounds)
    return work


@njit(no_cpython_wrapper=True)
def _prune_parallel(net: Net, vertex: int, direct: Array, parallel: Array, bounds: Array) -> int:
    """Take away edges from a vertex that two others between the same vertices cover together; return the work."""
    edge, work = net.first_out[vertex], 0
    while edge >= 0:
        parallel[edge] = direct[net.target[edge]]
        direct[net.target[edge]] = edge
        edge = net.next_out[edge]
    edge = net.first_out[vertex]
    while edge >= 0:
        at, count = direct[net.target[edge]], 0
        while at >= 0:
            at, count = parallel[at], count + 1
        if count > 2:
            rows, at = np.empty(count, np.int32), direct[net.target[edge]]
            for i in range(count):
                rows[i], at = at, parallel[at]
            work += _mark_covered_by_two(net, _by_widest(net, rows), parallel, bounds)
        direct[net.target[edge]] = NONE  # each group once
        edge = net.next_out[edge]
    return work + _clear(net, vertex, direct, parallel)


@njit(no_cpython_wrapper=True)
def _by_widest(net: Net, rows: Array) -> Array:
    """Return edges in the order of that component of their weights that differs most between them."""
    widest, spread = 0, np.int64(-1)
    for i in range(net.weight.shape[1]):
        low = high = net.weight[rows[0], i]
        for row in rows:
            low, high = min(low, net.weight[row, i]), max(high, net.weight[row, i])
        if high - low > spread:
            widest, spread = i, high - low
    step = len(rows) // 2
    while step:  # a shell sort: argsort takes seconds to compile
        for i in range(step, len(rows)):
            row, at = rows[i], i
            while at >= step and net.weight[rows[at - step], widest] > net.weight[row, widest]:
                rows[at] = rows[at - step]
                at -= step
            rows[at] = row
        step //= 2
    return rows


@njit(no_cpython_wrapper=True)
def _mark_covered_by_two(net: Net, rows: Array, parallel: Array, bounds: Array) -> int:
    """Mark the edges that two of those near them in an order cover together; return how many pairs were compared."""
    count, compared = len(rows), 0
    before, after = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        before[i], after[i] = i - 1, i + 1
    for i in range(1, count - 1):
        first, covered = before[i], False
        for _ in range(_MAX_NEAR):
            second = after[i]
            for _ in range(_MAX_NEAR):
                if covered or first < 0 or second == count:
                    break
                compared += 1
                covered = cover_together(net.weight, rows[first], rows[second], rows[i], bounds)
                second = after[second]
            if covered or first < 0:
                break
            first = before[first]
        if covered:
            parallel[rows[i]] = -2
            after[before[i]], before[after[i]] = after[i], before[i]
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
def _clear(net: Net, vertex: int, direct: Array, parallel: Array) -> int:
    """Take away the marked edges of a vertex, and forget its targets; return how many edges it had."""
    count = 0
    edge = net.first_out[vertex]
    while edge >= 0:
        following = net.next_out[edge]
        direct[net.target[edge]] = NONE
        if parallel[edge] == -2:
            remove(net, edge)
        edge = following
        count += 1
    return count
