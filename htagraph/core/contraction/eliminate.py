"""Vertices leave a DAG one by one while that adds no edges, and edges that other paths cover. Compiled by numba.

Weights, bounds and what one vector covers are those of `contraction.vectors`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit
from htagraph.core.contraction.vectors import cover_together, covers

__all__ = ["Net", "net_of", "prune", "shrink"]

Array: TypeAlias = npt.NDArray[Any]

_MAX_PAIRS = 64
"""Pairs of an in-edge and an out-edge of a vertex up to which it may leave. Chosen: a vertex with more of them rarely
leaves without adding edges. Doubled, skeletons become a few percent smaller in twice the time."""
_MAX_SEARCH = 64
"""How many edges of a vertex are searched for one that leads to another vertex. Chosen: it bounds the work for each
vertex. Doubled, a few vertices beside hubs leave too."""
_MAX_NEAR = 4
"""How many edges on either side, in an order of parallel ones, may cover one of them together. Chosen: neighbours do
where ways differ gradually. Doubled, a few more of the parallel edges leave in four times the time."""
_NONE = -1


class Net(NamedTuple):
    """A DAG whose edges can be taken away and added: doubly linked lists of the edges that leave and enter a vertex."""

    source: Array
    """By edge; -1 for a place without an edge."""
    target: Array
    weight: Array
    """By edge: one column per component."""
    next_out: Array
    last_out: Array
    next_in: Array
    last_in: Array
    first_out: Array
    """By vertex; -1 for none, as in all lists."""
    first_in: Array
    out_degree: Array
    in_degree: Array
    free: Array
    """Places without an edge, the last one to be used first; entry 0 is their number."""


def net_of(count: int, source: Array, target: Array, weight: Array) -> Net:
    """Return a DAG of `count` vertices with these edges, and with room for those of one vertex more."""
    room = len(source) + _MAX_PAIRS
    ends, links = np.full((2, room), _NONE, np.int32), np.full((4, room), _NONE, np.int32)
    firsts, degrees = np.full((2, count), _NONE, np.int32), np.zeros((2, count), np.int32)
    free = np.arange(room, -1, -1, dtype=np.int32)
    net = Net(
        ends[0], ends[1], np.empty((room, weight.shape[1]), np.int64), links[0], links[1], links[2], links[3],
        firsts[0], firsts[1], degrees[0], degrees[1], free,
    )  # fmt: skip
    net.free[0] = room
    _fill(net, source, target, weight)
    return net


@njit(cache=True)
def _fill(net: Net, source: Array, target: Array, weight: Array) -> None:
    for i in range(len(source)):
        _insert(net, source[i], target[i], weight, i)


@njit(cache=True)
def _copy(result: Array, row: int, vectors: Array, other: int) -> None:
    for i in range(result.shape[1]):
        result[row, i] = vectors[other, i]


@njit(cache=True)
def _add(result: Array, row: int, vectors: Array, first: int, second: int) -> None:
    for i in range(result.shape[1]):
        result[row, i] = vectors[first, i] + vectors[second, i]


@njit(cache=True)
def _among(number: int, numbers: Array, count: int) -> bool:
    found = False
    for i in range(count):
        found |= numbers[i] == number
    return found


@njit(cache=True)
def _insert(net: Net, source: int, target: int, weight: Array, row: int) -> None:
    edge = net.free[net.free[0]]
    net.free[0] -= 1
    net.source[edge], net.target[edge] = source, target
    _copy(net.weight, edge, weight, row)
    for vertex, first, following, last in (
        (source, net.first_out, net.next_out, net.last_out),
        (target, net.first_in, net.next_in, net.last_in),
    ):
        following[edge], last[edge] = first[vertex], _NONE
        if first[vertex] >= 0:
            last[first[vertex]] = edge
        first[vertex] = edge
    net.out_degree[source] += 1
    net.in_degree[target] += 1


@njit(cache=True)
def _remove(net: Net, edge: int) -> None:
    source, target = net.source[edge], net.target[edge]
    for vertex, first, following, last in (
        (source, net.first_out, net.next_out, net.last_out),
        (target, net.first_in, net.next_in, net.last_in),
    ):
        if last[edge] >= 0:
            following[last[edge]] = following[edge]
        else:
            first[vertex] = following[edge]
        if following[edge] >= 0:
            last[following[edge]] = last[edge]
    net.out_degree[source] -= 1
    net.in_degree[target] -= 1
    net.source[edge] = _NONE
    net.free[0] += 1
    net.free[net.free[0]] = edge


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
        np.empty(_MAX_PAIRS, np.int32), np.empty(_MAX_PAIRS, np.int32),
        np.empty((_MAX_PAIRS, len(bounds)), np.int64), np.empty(_MAX_PAIRS * _MAX_SEARCH, np.int32),
        np.zeros(1, np.int64),
    )  # fmt: skip
    around = np.empty(2 * _MAX_PAIRS + 2, np.int32)
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


@njit(cache=True)
def _beside(net: Net, vertex: int, around: Array) -> int:
    """Write the ends of all edges of a vertex to `around`; return their number, or -1 if it has too many pairs."""
    if net.in_degree[vertex] * net.out_degree[vertex] > _MAX_PAIRS:
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


@njit(cache=True)
def _leaves(net: Net, vertex: int, pairs: _Pairs, bounds: Array) -> bool:
    """Take a vertex away if that adds no edges; return whether it was."""
    count = _paths_over(net, vertex, pairs, bounds)
    added, covered = 0, 0
    for i in range(count):
        found = _compare(net, i, pairs, covered, bounds)
        if found < -1:
            return False
        if found < 0:
            pairs.source[i] = _NONE
            continue
        added, covered = added + 1, found
    if added > covered + net.in_degree[vertex] + net.out_degree[vertex]:
        return False
    _replace(net, vertex, pairs, count, covered)
    return True


@njit(cache=True)
def _replace(net: Net, vertex: int, pairs: _Pairs, count: int, covered: int) -> None:
    """Take away the edges of a vertex and those that are covered, and add the paths over it."""
    for i in range(covered):
        if net.source[pairs.covered[i]] >= 0:
            _remove(net, pairs.covered[i])
    while net.first_in[vertex] >= 0:
        _remove(net, net.first_in[vertex])
    while net.first_out[vertex] >= 0:
        _remove(net, net.first_out[vertex])
    for i in range(count):
        if pairs.source[i] >= 0:
            _insert(net, pairs.source[i], pairs.target[i], pairs.weight, i)


@njit(cache=True)
def _paths_over(net: Net, vertex: int, pairs: _Pairs, bounds: Array) -> int:
    """Write the paths of two edges over a vertex to `pairs`, less those that others cover; return their number."""
    count = 0
    come = net.first_in[vertex]
    while come >= 0:
        go = net.first_out[vertex]
        while go >= 0:
            source, target = net.source[come], net.target[go]
            pairs.source[count], pairs.target[count] = source, target
            _add(pairs.weight, count, net.weight, come, go)
            count = _with_the_last(count, pairs, bounds)
            go = net.next_out[go]
        come = net.next_in[come]
    return count


@njit(cache=True)
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
            _copy(pairs.weight, kept, pairs.weight, i)
        kept += 1
    if kept < count:
        pairs.source[kept], pairs.target[kept] = pairs.source[count], pairs.target[count]
        _copy(pairs.weight, kept, pairs.weight, count)
    return kept + 1


@njit(cache=True)
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


@njit(cache=True)
def prune(net: Net, bounds: Array) -> int:
    """Take away every edge that a path of two other edges covers; return how many pairs of edges were looked at.

    Where a vertex has very many edges, not all of its paths are tried.
    """
    count = len(net.first_out)
    direct = np.full(count, _NONE, np.int32)  # by target, an edge from the vertex at hand
    parallel = np.full(len(net.source), _NONE, np.int32)  # by edge, the next one between the same two vertices
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
            go = net.first_out[net.target[edge]] if net.out_degree[net.target[edge]] <= _MAX_SEARCH else _NONE
            while go >= 0:
                work += 1
                beside = direct[net.target[go]]
                if beside >= 0:
                    _add(longer, 0, net.weight, edge, go)
                    direct[net.target[go]] = _without_covered(net, beside, parallel, longer, bounds)
                go = net.next_out[go]
            edge = net.next_out[edge]
        work += _clear(net, vertex, direct, parallel)
        if len(bounds) > 1 and net.out_degree[vertex] > 2:
            work += _prune_parallel(net, vertex, direct, parallel, bounds)
    return work


@njit(cache=True)
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
        direct[net.target[edge]] = _NONE  # each group once
        edge = net.next_out[edge]
    return work + _clear(net, vertex, direct, parallel)


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def _without_covered(net: Net, edge: int, parallel: Array, longer: Array, bounds: Array) -> int:
    """Return the first of parallel edges that a path does not cover; the others are marked and leave the list."""
    first, before = _NONE, _NONE
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
        parallel[before] = _NONE
    return first


@njit(cache=True)
def _clear(net: Net, vertex: int, direct: Array, parallel: Array) -> int:
    """Take away the marked edges of a vertex, and forget its targets; return how many edges it had."""
    count = 0
    edge = net.first_out[vertex]
    while edge >= 0:
        following = net.next_out[edge]
        direct[net.target[edge]] = _NONE
        if parallel[edge] == -2:
            _remove(net, edge)
        edge = following
        count += 1
    return count
