"""A DAG whose edges are taken away and added one by one. Compiled by numba."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit

__all__ = ["MAX_PAIRS", "NONE", "Net", "add", "copy", "insert", "net_of", "remove"]

Array: TypeAlias = npt.NDArray[Any]

MAX_PAIRS = 64
"""Pairs of an in-edge and an out-edge of a vertex up to which it may leave. Chosen: a vertex with more of them rarely
leaves without adding edges. Doubled, skeletons become a few percent smaller in twice the time."""
NONE = -1
"""Stands for no edge."""


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
    room = len(source) + MAX_PAIRS
    ends, links = np.full((2, room), NONE, np.int32), np.full((4, room), NONE, np.int32)
    firsts, degrees = np.full((2, count), NONE, np.int32), np.zeros((2, count), np.int32)
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
        insert(net, source[i], target[i], weight, i)


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
def insert(net: Net, source: int, target: int, weight: Array, row: int) -> None:
    """Add an edge, whose weight is a row of `weight`."""
    edge = net.free[net.free[0]]
    net.free[0] -= 1
    net.source[edge], net.target[edge] = source, target
    copy(net.weight, edge, weight, row)
    for vertex, first, following, last in (
        (source, net.first_out, net.next_out, net.last_out),
        (target, net.first_in, net.next_in, net.last_in),
    ):
        following[edge], last[edge] = first[vertex], NONE
        if first[vertex] >= 0:
            last[first[vertex]] = edge
        first[vertex] = edge
    net.out_degree[source] += 1
    net.in_degree[target] += 1


@njit(cache=True)
def remove(net: Net, edge: int) -> None:
    """Take an edge away."""
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
    net.source[edge] = NONE
    net.free[0] += 1
    net.free[net.free[0]] = edge
