"""A DAG whose edges are taken away and added one by one, by what other paths cover. Compiled by numba.

Weights are vectors, of which one may be at least as long as another whatever the factors are: the first component
counts as it is, every other one times a factor that is chosen later, from 0 to the bound of that component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit

__all__ = [
    "MOST_TRIED", "NONE", "SOURCE", "TARGET", "UNBOUNDED", "Net", "Weights", "add", "copy", "covers", "insert", "live",
    "net_of", "prune", "remove", "shrink",
]  # fmt: skip

UNBOUNDED = -1
"""The bound of a component whose factor may be any number from 0 on. It is a mark: no result depends on its size."""
_MARGIN = 1.0
"""By how much a mean of two vectors has to be longer than a third one for this to be certain, ns. Chosen: sums of
numbers below 2^50 in 64-bit floating point are off by less. Doubled, a few more edges stay."""


class Weights(NamedTuple):
    """The weight of each edge: a number, and some amounts that count times the factor of their component."""

    base: Array
    """The first component, by edge."""
    offsets: Array
    """Where the amounts of each edge begin, and their number at the end."""
    component: Array
    """Of each amount: 1 to the number of factors."""
    amount: Array


@njit(cache=True)
def copy(result: Array, row: int, vectors: Array, other: int) -> None:
    """Set a row of vectors to another one of others."""
    for i in range(result.shape[1]):
        result[row, i] = vectors[other, i]


@njit(cache=True)
def add(result: Array, row: int, vectors: Array, first: int, second: int) -> None:
    """Set a row of vectors to the sum of two of others."""
    for i in range(result.shape[1]):
        result[row, i] = vectors[first, i] + vectors[second, i]


@njit(cache=True)
def covers(first: Array, row: int, second: Array, other: int, bounds: Array) -> bool:
    """Return whether one vector is at least as long as another one for all factors up to their bounds.

    Each vector is a row of a table: views of single rows would take longer than this comparison.
    """
    ahead = first[row, 0] - second[other, 0]
    for i in range(1, len(bounds)):
        if ahead < 0:  # it only falls
            return False
        more = first[row, i] - second[other, i]
        if more < 0:
            if bounds[i] == UNBOUNDED:
                return False
            ahead += bounds[i] * more
    return bool(ahead >= 0)


@njit(cache=True)
def cover_together(vectors: Array, first: int, second: int, other: int, bounds: Array) -> bool:
    """Return whether the longer one of two vectors is at least as long as a third one for all factors.

    It is if a weighted mean of the two covers the third one. The share of the first vector in it is one at which the
    mean and the third vector have the same component: between these shares, what the mean is ahead by is linear.
    If it is shorter than the third one by any factor, or by rounding might be, the answer is False.
    """
    for i in range(1, len(bounds)):  # at a share by the first component, the mean is ahead by nothing
        apart, beyond = vectors[first, i] - vectors[second, i], vectors[other, i] - vectors[second, i]
        if (0 < beyond < apart or apart < beyond < 0) and _ahead(vectors, first, second, other, i, bounds) >= _MARGIN:
            return True
    return False


@njit(no_cpython_wrapper=True)
def _ahead(vectors: Array, first: int, second: int, other: int, same: int, bounds: Array) -> float:
    """Return by how much a mean of two vectors is at least longer than a third one; -1 if that is not enough.

    The mean is the one whose component `same` is that of the third vector.
    """
    share = (vectors[other, same] - vectors[second, same]) / (vectors[first, same] - vectors[second, same])
    ahead = vectors[second, 0] - vectors[other, 0] + share * (vectors[first, 0] - vectors[second, 0])
    for i in range(1, len(bounds)):
        if ahead < _MARGIN:  # it only falls
            return -1.0
        if i == same:
            continue
        apart = vectors[first, i] - vectors[second, i]
        more = vectors[second, i] - vectors[other, i] + share * apart
        if more < (_MARGIN if apart else 0.0):
            if bounds[i] == UNBOUNDED:
                return -1.0
            ahead += bounds[i] * more if more < 0.0 else 0.0  # min would be compiled too
    return ahead


MOST_TRIED = 64
"""How many edges, or pairs of an in-edge and an out-edge, are tried at a vertex. Chosen: it bounds the work for each
vertex, and one with more pairs rarely leaves without adding edges. Doubled, skeletons become a few percent smaller in
twice the time."""
NONE = -1
"""Stands for no edge."""
SOURCE, TARGET, NEXT_OUT, NEXT_IN, _LAST_OUT, _LAST_IN = range(6)
"""Columns of `Net.edge`."""
FIRST_OUT, FIRST_IN, OUT_DEGREE, IN_DEGREE = range(4)
"""Columns of `Net.vertex`."""

_MAX_NEAR = 4
"""How many edges on either side, in an order of parallel ones, may cover one of them together. Chosen: neighbours do
where ways differ gradually. Doubled, a few more of the parallel edges leave in four times the time."""


class Net(NamedTuple):
    """A DAG whose edges can be taken away and added: doubly linked lists of the edges that leave and enter a vertex.

    It has few arrays, as each one makes compiling longer: every function that gets them takes all their fields.
    """

    edge: Array
    """By edge, a row: its source (-1 for a place without an edge), its target, the next edge that leaves the source,
    the next one that enters the target, and the edges before it in these two lists; -1 for none."""
    weight: Array
    """By edge: one column per component."""
    vertex: Array
    """By vertex, a row: the first edge that leaves, the first one that enters, and how many there are of each."""
    free: Array
    """Places without an edge, the last one to be used first; entry 0 is their number."""


def net_of(count: int, source: Array, target: Array, weight: Array) -> Net:
    """Return a DAG of `count` vertices with these edges, and with room for those of one vertex more."""
    room = len(source) + MOST_TRIED
    vertex = np.full((count, 4), NONE, np.int32)
    vertex[:, OUT_DEGREE:] = 0
    free = np.arange(room, -1, -1, dtype=np.int32)
    net = Net(np.full((room, 6), NONE, np.int32), np.empty((room, weight.shape[1]), np.int64), vertex, free)
    net.free[0] = room
    _fill(net, for_reading(source, np.int32), for_reading(target, np.int32), np.ascontiguousarray(weight, np.int64))
    return net


def live(net: Net) -> tuple[Array, Array, Array]:
    """Return (sources, targets, weights) of the edges that are left."""
    edges = np.flatnonzero(net.edge[:, SOURCE] >= 0)
    return net.edge[edges, SOURCE], net.edge[edges, TARGET], net.weight[edges]


@njit(cache=True, nogil=True)
def _fill(net: Net, source: Array, target: Array, weight: Array) -> None:
    for i in range(len(source)):
        insert(net, source[i], target[i], weight, i)


@njit(cache=True)
def insert(net: Net, source: int, target: int, weight: Array, row: int) -> None:
    """Add an edge, whose weight is a row of `weight`."""
    edge = net.free[net.free[0]]
    net.free[0] -= 1
    net.edge[edge, SOURCE], net.edge[edge, TARGET] = source, target
    copy(net.weight, edge, weight, row)
    for side in range(2):  # among those that leave the source, then among those that enter the target
        vertex = net.edge[edge, SOURCE + side]
        following = net.vertex[vertex, FIRST_OUT + side]
        net.edge[edge, NEXT_OUT + side], net.edge[edge, _LAST_OUT + side] = following, NONE
        if following >= 0:
            net.edge[following, _LAST_OUT + side] = edge
        net.vertex[vertex, FIRST_OUT + side] = edge
        net.vertex[vertex, OUT_DEGREE + side] += 1


@njit(cache=True)
def remove(net: Net, edge: int) -> None:
    """Take an edge away."""
    for side in range(2):
        vertex = net.edge[edge, SOURCE + side]
        following, last = net.edge[edge, NEXT_OUT + side], net.edge[edge, _LAST_OUT + side]
        if last >= 0:
            net.edge[last, NEXT_OUT + side] = following
        else:
            net.vertex[vertex, FIRST_OUT + side] = following
        if following >= 0:
            net.edge[following, _LAST_OUT + side] = last
        net.vertex[vertex, OUT_DEGREE + side] -= 1
    net.edge[edge, SOURCE] = NONE
    net.free[0] += 1
    net.free[net.free[0]] = edge


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


@njit(cache=True, nogil=True)
def _prune(net: Net, bounds: Array, lists: _Lists, longer: Array) -> int:
    direct, parallel = lists.direct, lists.parallel
    work = 0
    for vertex in range(len(net.vertex)):
        if net.vertex[vertex, OUT_DEGREE] < 2:
            continue
        _list_by_target(net, vertex, lists)
        edge = net.vertex[vertex, FIRST_OUT]
        while edge >= 0:
            to = net.edge[edge, TARGET]
            go = net.vertex[to, FIRST_OUT] if net.vertex[to, OUT_DEGREE] <= MOST_TRIED else NONE
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
def _list_by_target(net: Net, vertex: int, lists: _Lists) -> None:
    edge = net.vertex[vertex, FIRST_OUT]
    while edge >= 0:
        lists.parallel[edge] = lists.direct[net.edge[edge, TARGET]]
        lists.direct[net.edge[edge, TARGET]] = edge
        edge = net.edge[edge, NEXT_OUT]


@njit(no_cpython_wrapper=True)
def _prune_parallel(net: Net, vertex: int, lists: _Lists, bounds: Array) -> int:
    """Take away edges from a vertex that two others between the same vertices cover together; return the work."""
    direct, parallel = lists.direct, lists.parallel
    _list_by_target(net, vertex, lists)
    edge, work = net.vertex[vertex, FIRST_OUT], 0
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
    pairs = _TwoEdgePaths(
        np.empty((MOST_TRIED, 2), np.int32), np.empty((MOST_TRIED, len(bounds)), np.int64),
        np.empty(MOST_TRIED * MOST_TRIED, np.int32), np.zeros(1, np.int64),
    )  # fmt: skip
    queue, around = np.arange(len(terminal), dtype=np.int32), np.empty(2 * MOST_TRIED + 2, np.int32)
    _shrink(net, terminal, for_reading(bounds, np.int64), pairs, queue, ~terminal, around)
    return int(pairs.work[0])


@njit(cache=True, nogil=True)
def _shrink(  # noqa: PLR0913, PLR0917 - what `shrink` has, and memory to work in
    net: Net, terminal: Array, bounds: Array, pairs: _TwoEdgePaths, queue: Array, queued: Array, around: Array
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


class _TwoEdgePaths(NamedTuple):
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
    if net.vertex[vertex, IN_DEGREE] * net.vertex[vertex, OUT_DEGREE] > MOST_TRIED:
        return -1
    if net.vertex[vertex, IN_DEGREE] + net.vertex[vertex, OUT_DEGREE] > len(around):
        return -1
    count = 0
    for side in (1, 0):  # those that enter it, then those that leave it
        edge = net.vertex[vertex, FIRST_OUT + side]
        while edge >= 0:
            around[count] = net.edge[edge, TARGET - side]
            count += 1
            edge = net.edge[edge, NEXT_OUT + side]
    return count


@njit(no_cpython_wrapper=True)
def _leaves(net: Net, vertex: int, pairs: _TwoEdgePaths, bounds: Array) -> bool:
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
def _replace(net: Net, vertex: int, pairs: _TwoEdgePaths, count: int, covered: int) -> None:
    """Take away the edges of a vertex and those that are covered, and add the paths over it."""
    for i in range(covered):
        if net.edge[pairs.covered[i], SOURCE] >= 0:
            remove(net, pairs.covered[i])
    for first in (FIRST_IN, FIRST_OUT):
        while net.vertex[vertex, first] >= 0:
            remove(net, net.vertex[vertex, first])
    for i in range(count):
        if pairs.ends[i, 0] >= 0:
            insert(net, pairs.ends[i, 0], pairs.ends[i, 1], pairs.weight, i)


@njit(no_cpython_wrapper=True)
def _paths_over(net: Net, vertex: int, pairs: _TwoEdgePaths, bounds: Array) -> int:
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
def _with_the_last(count: int, pairs: _TwoEdgePaths, bounds: Array) -> int:
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
def _compare(net: Net, number: int, pairs: _TwoEdgePaths, covered: int, bounds: Array) -> int:
    """Return how many edges are covered with those that one path covers, -1 if an edge covers it, -2 if there are many.

    The edges that it covers are added to the `covered` ones.
    """
    source, target = pairs.ends[number, 0], pairs.ends[number, 1]
    outward = net.vertex[source, OUT_DEGREE] <= net.vertex[target, IN_DEGREE]
    if (net.vertex[source, OUT_DEGREE] if outward else net.vertex[target, IN_DEGREE]) > MOST_TRIED:
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
