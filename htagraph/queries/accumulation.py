"""Gradients that are reduced several times before each step of an optimizer, though the last time would do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import collective_op, is_autograd_node, is_backward, is_optimizer, is_product, names_that
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["RepeatedReductions", "repeated_reductions"]


class RepeatedReductions(NamedTuple):
    """The all-reduces of a job whose gradients are reduced several times per step of the optimizer."""

    activity: Ints
    """The all-reduces of all ranks."""
    times: int
    """How many times all gradients are reduced before each step of the optimizer."""


class _OfRank(NamedTuple):
    """What a rank does, in the order of time, ns."""

    reductions: Ints
    """The all-reduces, in the order in which they were asked for."""
    asked: Array
    """When each was asked for."""
    optimizer: Array
    """When each step of the optimizer begins."""
    backward: Array
    """When each operator of the backward pass begins."""
    forward: Array
    """When each product of the forward pass begins: a hook of a gradient computes none."""


def repeated_reductions(graph: DependencyGraph) -> RepeatedReductions | None:
    """Return the all-reduces of which equal ones follow each other before each step of an optimizer; None for none.

    Between equal ones are products of a forward pass and operators of a backward pass, so that no reductions of equal
    layers are meant. All ranks and steps of the optimizer have as many.

    Example:
        >>> import htagraph as hg
        >>> repeated_reductions(hg.load("data/demo")) is None
        True
    """
    rows = list[Ints]()
    times = set[int]()
    bytes_of = np.full(len(graph.activities), -1, np.int64)
    bytes_of[graph.waits.activity] = graph.waits.bytes
    for rank in graph.ranks:
        of_rank = _of_rank(graph, rank)
        interval = np.searchsorted(of_rank.optimizer, of_rank.asked)
        is_closed = interval < len(of_rank.optimizer)  # what follows the last step may go on after the recording
        for number in np.unique(interval[is_closed]).tolist():
            own = np.flatnonzero(interval == number)
            sizes = bytes_of[of_rank.reductions[own]]
            if number == 0 and len(of_rank.optimizer) > 1:  # it may have begun before the recording
                continue
            times.add(_times(sizes, of_rank.asked[own], of_rank))
            rows.append(of_rank.reductions[own])
    if len(times) != 1 or min(times) < 2:
        return None
    return RepeatedReductions(np.concatenate(rows), times.pop())


def _of_rank(graph: DependencyGraph, rank: int) -> _OfRank:
    """Return what one rank reduces and computes."""
    acts = graph.activities
    here = acts.rank == rank
    reduces = names_that(lambda name: collective_op(name) == "all_reduce", graph.names)[acts.name]
    rows = np.flatnonzero(here & reduces & of_kinds(acts.kind, COMMUNICATION))
    is_caused = acts.on_device[rows] & (acts.cause[rows] >= 0)
    asked = acts.start[np.where(is_caused, acts.cause[rows], rows)]
    order = np.argsort(asked, kind="stable")
    steps = here & ~acts.on_device & names_that(is_optimizer, graph.names)[acts.name]
    is_node = names_that(is_backward, graph.names) | names_that(is_autograd_node, graph.names)
    nodes = here & (acts.kind == ActivityKind.OP) & is_node[acts.name]
    products = here & ~acts.on_device & names_that(is_product, graph.names)[acts.name] & ~graph.tree.inside(nodes)
    begins = [np.sort(acts.start[chosen]) for chosen in (steps, nodes, products)]
    return _OfRank(rows[order], asked[order], *begins)


def _times(sizes: Ints, asked: Array, of_rank: _OfRank) -> int:
    """Return how many equal groups some all-reduces are, each behind a forward and a backward pass of its own.

    Where sizes were not recorded, groups are equal that are behind as many operators of the backward pass.

    Args:
        sizes: bytes of each, in the order in which they were asked for; -1 where unknown.
        asked: when each was asked for.
        of_rank: what the rank does.
    """
    nodes = np.searchsorted(of_rank.backward, asked)
    products = np.searchsorted(of_rank.forward, asked)
    for times in range(len(sizes), 1, -1):
        each, rest = divmod(len(sizes), times)
        if rest:
            continue
        size = np.sort(sizes.reshape(times, each), axis=1)
        begin = np.arange(times) * each
        end = begin + each - 1
        is_alike = bool((size == size[0]).all())
        has_passes = bool(
            (products[begin[1:]] > products[end[:-1]]).all() and (nodes[begin[1:]] > nodes[end[:-1]]).all()
        )
        if (sizes <= 0).any():
            between = nodes[begin[1:]] - nodes[end[:-1]]
            is_alike = is_alike and len(np.unique(between)) == 1
        if is_alike and has_passes:
            return times
    return 1
