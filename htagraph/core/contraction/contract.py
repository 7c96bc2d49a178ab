"""A small DAG whose longest paths between terminals are those of a large one, to the ns, whatever the factors are.

`collapse` leaves out every vertex that a single other vertex decides, in one pass. Compiled by numba.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints
from htagraph.core.compiled import for_reading, njit
from htagraph.core.contraction.net import MOST_TRIED, UNBOUNDED, Net, Weights, copy, covers, live, net_of, prune, shrink
from htagraph.core.traverse import counting_order

__all__ = ["Collapsed", "Contracted", "collapse", "contract", "relevant_ends"]

_MAX_ROUNDS = 8
"""How often vertices leave and edges are pruned by turns, at most. Chosen: after three rounds nothing changes on the
traces of the tests. Doubled, unusual graphs become a little smaller."""
_LEAST_CHANGE = 0.01
"""Share of the edges that a round has to take away for another one to follow. Chosen: the rest is not worth its time.
Doubled, skeletons are up to 2 % larger."""


@dataclass(frozen=True, eq=False)
class Contracted:
    """What is left of a DAG: its terminals, a few vertices between them, and edges sorted by (target, source)."""

    vertex: Ints
    """The vertices that are left, in topological order."""
    source: npt.NDArray[np.int32]
    """Position in `vertex`."""
    target: npt.NDArray[np.int32]
    weight: Ints
    """One row per edge, one column per component."""
    work: int
    """How many edges, and pairs of edges, were looked at: it grows linearly with the number of edges."""


def contract(
    order: Array, source: Array, target: Array, weights: Weights, *, terminal: Array, bounds: Array
) -> Contracted:
    """Return a small DAG in which, between any two terminals, some longest path is as long as in the large one.

    Vertices that a single earlier or a single later vertex decides leave in two passes. Then vertices leave one by one
    as long as that adds no edges, and edges that a path of two edges covers leave too. The weights are per edge;
    `terminal` is a mask of vertices that stay; `bounds` is the largest factor of each component but the first, or
    `UNBOUNDED`.
    """
    bounds = np.asarray(bounds, np.int64)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    source, target, terminal, work = place[source], place[target], np.asarray(terminal)[order], len(source)
    source, target, weight = _in_runs(source, target, weights, terminal, len(bounds))
    kept, source, target, terminal = _renumbered(source, target, terminal)
    forward = _pass(source, target, weight, terminal, bounds, backward=False)
    again, source, target, terminal = _renumbered(forward.source, forward.target, terminal)
    kept = kept[again]
    back = _pass(source, target, forward.weight, terminal, bounds, backward=True)
    again, source, target, terminal = _renumbered(back.target, back.source, terminal)
    kept = kept[again]
    net = net_of(len(kept), source, target, back.weight)
    work += forward.work + back.work + _reduce(net, terminal, bounds)
    source, target, weight = live(net)
    stays, source, target, _ = _renumbered(source, target, terminal)
    by_target = np.lexsort((source, target))
    return Contracted(
        np.asarray(order)[kept[stays]].astype(np.int64), source[by_target], target[by_target], weight[by_target], work
    )


def _in_runs(source: Array, target: Array, weights: Weights, terminal: Array, size: int) -> tuple[Array, Array, Array]:
    """Return (sources, targets, weights) with one edge for each stretch of vertices with one edge in and one out.

    Nine of ten vertices lie within one: so what is kept of each vertex is kept for the others only. The edges are by
    target, and in the order in which they enter it.
    """
    offsets, entering = counting_order(target, len(terminal))
    inner = (np.diff(offsets) == 1) & (np.bincount(source, minlength=len(terminal)) == 1) & ~terminal
    ends = np.empty((2, len(source) - int(inner.sum())), np.int32)
    weight = np.zeros((ends.shape[1], size), np.int64)
    offsets, source = for_reading(offsets, np.int64), for_reading(source, np.int32)
    _merge(offsets, entering, source, _to_read(weights), inner, ends, weight)
    return ends[0], ends[1], weight


@njit(cache=True, nogil=True)
def _merge(  # noqa: PLR0913, PLR0917 - a graph as arrays
    offsets: Array, edges: Array, source: Array, weights: Weights, inner: Array, ends: Array, weight: Array
) -> None:
    run = 0
    for vertex in range(len(inner)):
        if inner[vertex]:
            continue
        for i in range(offsets[vertex], offsets[vertex + 1]):
            edge = edges[i]
            _lengthen(weight, run, weights, edge)
            while inner[source[edge]]:
                edge = edges[offsets[source[edge]]]
                _lengthen(weight, run, weights, edge)
            ends[0, run], ends[1, run] = source[edge], vertex
            run += 1


@njit(no_cpython_wrapper=True)
def _lengthen(result: Array, row: int, weights: Weights, edge: int) -> None:
    result[row, 0] += weights.base[edge]
    for i in range(weights.offsets[edge], weights.offsets[edge + 1]):
        result[row, weights.component[i]] += weights.amount[i]


def _pass(source: Array, target: Array, weight: Array, terminal: Array, bounds: Array, *, backward: bool) -> Collapsed:
    count = len(terminal)
    if backward:
        source, target = target, source
    offsets, edges = counting_order(target, count)
    order = np.arange(count)[::-1] if backward else np.arange(count)
    return collapse(order, offsets, edges, source, weight, terminal, bounds)


def _renumbered(source: Array, target: Array, terminal: Array) -> tuple[Array, Array, Array, Array]:
    """Return (vertices that are left, sources, targets, terminals) with the vertices numbered by their order."""
    left = terminal.copy()
    left[source] = True
    left[target] = True
    number = np.cumsum(left, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(left), number[source], number[target], terminal[left]


def _reduce(net: Net, terminal: Array, bounds: Array) -> int:
    """Let vertices leave and prune edges by turns until nothing changes; return how many pairs were looked at."""
    work, left = 0, len(net.edge) - int(net.free[0])
    for _ in range(_MAX_ROUNDS):
        work += prune(net, bounds) + shrink(net, terminal, bounds)
        before, left = left, len(net.edge) - int(net.free[0])
        if before - left <= _LEAST_CHANGE * before:
            break
    return work


class Collapsed(NamedTuple):
    """The edges that are left. A vertex is left if it is a terminal or an end of one of them."""

    source: Array
    target: Array
    weight: Array
    """One row per edge, one column per component."""
    work: int
    """How many edges, and pairs of parallel edges, were looked at."""


def relevant_ends(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, offsets: Array, edges: Array, target: Array, weights: Weights, bounds: Array, ends: Array
) -> Array:  # fmt: skip
    """Return which of the vertices `ends` may happen last: no other of them always follows at the same time or later.

    `edges` are those that leave each vertex; `ends` is a mask.
    """
    followed = np.zeros(len(order), np.bool_)
    order, edges, target = (for_reading(each, np.int32) for each in (order, edges, target))
    offsets, bounds, mask = for_reading(offsets, np.int64), for_reading(bounds, np.int64), for_reading(ends, np.bool_)
    _find_followed(followed, order, offsets, edges, target, _to_read(weights), bounds, mask)
    return mask & ~followed


def _to_read(weights: Weights) -> Weights:
    base, offsets, amount = (for_reading(each, np.int64) for each in (weights.base, weights.offsets, weights.amount))
    return Weights(base, offsets, for_reading(weights.component, np.int16), amount)


@njit(cache=True, nogil=True)
def _find_followed(  # noqa: PLR0913, PLR0917 - a graph as arrays
    followed: Array, order: Array, offsets: Array, edges: Array, target: Array, weights: Weights, bounds: Array,
    ends: Array,
) -> None:  # fmt: skip
    """Mark the vertices after which one of the ends surely happens."""
    for i in range(len(order) - 1, -1, -1):
        vertex = order[i]
        for j in range(offsets[vertex], offsets[vertex + 1]):
            edge = edges[j]
            if (ends[target[edge]] or followed[target[edge]]) and _never_negative(weights, edge, bounds):
                followed[vertex] = True
                break


@njit(no_cpython_wrapper=True)
def _never_negative(weights: Weights, edge: int, bounds: Array) -> bool:
    least = weights.base[edge]
    for i in range(weights.offsets[edge], weights.offsets[edge + 1]):
        if weights.amount[i] < 0:
            if bounds[weights.component[i]] == UNBOUNDED:
                return False
            least += bounds[weights.component[i]] * weights.amount[i]
    return bool(least >= 0)


def collapse(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, offsets: Array, edges: Array, source: Array, weight: Array, terminal: Array, bounds: Array
) -> Collapsed:
    """Return the edges between vertices that more than one path decides, and terminals.

    A vertex is left out if all edges that enter it come, over vertices left out, from one vertex, and one of the paths
    covers all others. What leaves it then leaves that vertex, longer by that path. `weight` is a row per edge. The same
    pass goes backwards if `order` is reversed, `edges` are those that leave each vertex, and `source` is the vertex
    where an edge ends: then `source` and `target` of the result are exchanged too.
    """
    order, offsets, bounds, weight = (for_reading(each, np.int64) for each in (order, offsets, bounds, weight))
    edges, source, mask = for_reading(edges, np.int32), for_reading(source, np.int32), for_reading(terminal, np.bool_)
    count, size = len(order), len(bounds)
    reached = _Reached(np.full(count, -1, np.int32), np.zeros((count, size), np.int64), np.full(count, -1, np.int64))
    made = _Made(np.empty((len(edges), 3), np.int64), np.empty((len(edges), size), np.int64))  # each makes one at most
    kept, work = _collapse(order, offsets, edges, source, weight, mask, bounds, reached, made)
    ends = made.ends[:kept].astype(np.int32)
    return Collapsed(ends[:, 0], ends[:, 1], made.weight[:kept].copy(), work)


class _Reached(NamedTuple):
    """What is known of each vertex."""

    anchor: Array
    """The vertex that decides when this one happens; -1 if nothing does."""
    beyond: Array
    """How long after its anchor it happens."""
    latest: Array
    """The last edge that was made from it; -1 for none."""


class _Made(NamedTuple):
    """The edges that are made, with room for all."""

    ends: Array
    """Of each edge: its source, or -1 if another one covers it; its target; and the edge made before it from its
    source."""
    weight: Array


@njit(cache=True, nogil=True)
def _collapse(  # noqa: PLR0913, PLR0917 - a graph as arrays
    order: Array, offsets: Array, edges: Array, source: Array, weight: Array, terminal: Array, bounds: Array,
    reached: _Reached, made: _Made,
) -> tuple[int, int]:  # fmt: skip
    """Return how many edges are made, and how much was looked at for it."""
    anchor, beyond = reached.anchor, reached.beyond
    count = work = 0
    for vertex in order:
        begin = count
        for i in range(offsets[vertex], offsets[vertex + 1]):
            edge = edges[i]
            root = anchor[source[edge]]
            work += 1
            if root < 0:
                continue
            for j in range(len(bounds)):
                made.weight[count, j] = beyond[source[edge], j] + weight[edge, j]
            work += _offer(count, begin, root, reached.latest, made, bounds)
            count += 1
        count = _compact(begin, count, made, reached.latest)
        if count == begin + 1 and not terminal[vertex]:
            anchor[vertex] = made.ends[begin, 0]
            copy(beyond, vertex, made.weight, begin)
            count = begin
        elif count > begin or terminal[vertex]:
            anchor[vertex] = vertex
            for i in range(begin, count):
                made.ends[i, 1] = vertex
    return count, work


@njit(no_cpython_wrapper=True)
def _offer(new: int, begin: int, root: int, latest: Array, made: _Made, bounds: Array) -> int:
    """Mark the edges from `root` that another one covers, given a new one; return how many it was compared with.

    Edges from `begin` on enter the vertex at hand. A marked one has the source -1, and leaves the list of its root. Of
    very many from one root, not all are compared with each other.
    """
    ends, at, last, compared = made.ends, latest[root], new, 0
    ends[new, 0], ends[new, 2] = root, at
    while at >= begin and compared < MOST_TRIED:
        compared += 1
        if covers(made.weight, at, made.weight, new, bounds):
            ends[new, 0] = -1
            return compared
        if covers(made.weight, new, made.weight, at, bounds):
            ends[at, 0], ends[last, 2] = -1, ends[at, 2]
        else:
            last = at
        at = ends[at, 2]
    latest[root] = new
    return compared


@njit(no_cpython_wrapper=True)
def _compact(begin: int, count: int, made: _Made, latest: Array) -> int:
    """Close the gaps that marked edges leave from `begin` on; return how many edges there are then."""
    kept = begin
    for at in range(begin, count):
        source = made.ends[at, 0]
        if source >= 0:
            latest[source] = -1  # numbers below belong to the next vertex now
            if kept < at:
                made.ends[kept, 0] = source
                copy(made.weight, kept, made.weight, at)
            kept += 1
    return kept
