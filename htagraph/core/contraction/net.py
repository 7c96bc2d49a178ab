"""A DAG whose edges are taken away and added one by one. Compiled by numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit
from htagraph.core.contraction.vectors import copy

__all__ = [
    "FIRST_IN", "FIRST_OUT", "IN_DEGREE", "MAX_PAIRS", "NEXT_IN", "NEXT_OUT", "NONE", "OUT_DEGREE", "SOURCE", "TARGET",
    "Net", "insert", "net_of", "remove",
]  # fmt: skip


MAX_PAIRS = 64
"""Pairs of an in-edge and an out-edge of a vertex up to which it may leave. Chosen: a vertex with more of them rarely
leaves without adding edges. Doubled, skeletons become a few percent smaller in twice the time."""
NONE = -1
"""Stands for no edge."""
SOURCE, TARGET, NEXT_OUT, NEXT_IN, _LAST_OUT, _LAST_IN = range(6)
"""Columns of `Net.edge`."""
FIRST_OUT, FIRST_IN, OUT_DEGREE, IN_DEGREE = range(4)
"""Columns of `Net.vertex`."""


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
    room = len(source) + MAX_PAIRS
    vertex = np.full((count, 4), NONE, np.int32)
    vertex[:, OUT_DEGREE:] = 0
    free = np.arange(room, -1, -1, dtype=np.int32)
    net = Net(np.full((room, 6), NONE, np.int32), np.empty((room, weight.shape[1]), np.int64), vertex, free)
    net.free[0] = room
    _fill(net, for_reading(source, np.int32), for_reading(target, np.int32), np.ascontiguousarray(weight, np.int64))
    return net


@njit(cache=True)
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
