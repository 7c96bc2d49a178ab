"""A small DAG whose longest paths between terminals are those of a large one, to the ns, whatever the factors are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.contraction.collapse import Collapsed, collapse
from htagraph.core.contraction.eliminate import shrink
from htagraph.core.contraction.net import SOURCE, TARGET, Net, net_of
from htagraph.core.contraction.prune import prune
from htagraph.core.contraction.vectors import Weights, sparse
from htagraph.core.traverse import counting_order

__all__ = ["Contracted", "contract"]

_MAX_ROUNDS = 8
"""How often vertices leave and edges are pruned by turns, at most. Chosen: after three rounds nothing changes on the
traces of the tests. Doubled, unusual graphs become a little smaller."""
_LEAST_CHANGE = 0.01
"""Share of the edges that a round has to take away for another one to follow. Chosen: the rest is not worth its time.
Doubled, skeletons are up to 2 % larger."""


@dataclass(frozen=True, eq=False)
class Contracted:
    """What is left of a DAG: its terminals, a few vertices between them, and edges sorted by (target, source)."""

    vertex: npt.NDArray[np.int64]
    """The vertices that are left, in topological order."""
    source: npt.NDArray[np.int32]
    """Position in `vertex`."""
    target: npt.NDArray[np.int32]
    weight: npt.NDArray[np.int64]
    """One row per edge, one column per component."""
    work: int
    """How many edges, and pairs of edges, were looked at: it grows linearly with the number of edges."""


def contract(
    order: Array, source: Array, target: Array, weights: Weights, *, terminal: Array, bounds: Array
) -> Contracted:
    """Return a small DAG in which, between any two terminals, some longest path is as long as in the large one.

    Vertices that a single earlier or a single later vertex decides leave in two passes. Then vertices leave one by one
    as long as that adds no edges, and edges that a path of two edges covers leave too.

    Args:
        order: the vertices in topological order.
        source: of each edge, in any order.
        target: of each edge.
        weights: of each edge.
        terminal: a mask of vertices that stay.
        bounds: of each component, the largest factor or `UNBOUNDED`; that of the first one is not read.
    """
    bounds = np.asarray(bounds, np.int64)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    source, target, terminal = place[source], place[target], np.asarray(terminal)[order]
    forward = _pass(source, target, weights, terminal, bounds, backward=False)
    kept, source, target, terminal = _renumbered(forward.source, forward.target, terminal)
    back = _pass(source, target, sparse(forward.weight), terminal, bounds, backward=True)
    again, source, target, terminal = _renumbered(back.target, back.source, terminal)
    kept = kept[again]
    net = net_of(len(kept), source, target, back.weight)
    work = forward.work + back.work + _reduce(net, terminal, bounds)
    live = np.flatnonzero(net.edge[:, SOURCE] >= 0)
    stays, source, target, _ = _renumbered(net.edge[live, SOURCE], net.edge[live, TARGET], terminal)
    by_target = np.lexsort((source, target))
    return Contracted(
        np.asarray(order)[kept[stays]].astype(np.int64), source[by_target], target[by_target],
        net.weight[live][by_target], work,
    )  # fmt: skip


def _pass(
    source: Array, target: Array, weights: Weights, terminal: Array, bounds: Array, *, backward: bool
) -> Collapsed:
    count = len(terminal)
    if backward:
        source, target = target, source
    offsets, edges = counting_order(target, count)
    order = np.arange(count)[::-1] if backward else np.arange(count)
    return collapse(order, offsets, edges, source, weights, terminal, bounds)


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
