"""Gradients that are reduced several times before each step of an optimizer, though the last time would do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import collective_op, is_autograd_node, is_backward, is_optimizer, is_product, names_that
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["PassesOfRank", "RepeatedReductions", "are_behind_backward", "passes_of", "repeated_reductions"]

_ALL_REDUCE: Final = frozenset({"all_reduce"})
"""The operation of gradients that every rank has as a whole."""


class RepeatedReductions(NamedTuple):
    """The all-reduces of a job whose gradients are reduced several times per step of the optimizer."""

    activity: Ints
    """The all-reduces of all ranks."""
    times: int
    """How many times all gradients are reduced before each step of the optimizer."""


class PassesOfRank(NamedTuple):
    """The reductions of one rank, and the moments at which its passes compute, in the order of time, ns."""

    reductions: Ints
    """The reductions, in the order in which they were asked for."""
    asked: Array
    """When each was asked for."""
    optimizer: Array
    """When each step of the optimizer begins."""
    backward: Array
    """When each operator of the backward pass begins."""
    forward: Array
    """When each product of the forward pass begins: a hook of a gradient computes none."""


def repeated_reductions(graph: DependencyGraph) -> RepeatedReductions | None:
    """Return all-reduces that come in equal groups before each step of an optimizer; None where no group repeats.

    Between two groups are products of a forward pass and operators of a backward pass, so that reductions of equal
    layers are no groups. All ranks and all steps of the optimizer have the same number of groups.

    Example:
        >>> import htagraph as hg
        >>> repeated_reductions(hg.load("data/demo")) is None
        True
    """
    rows = list[Ints]()
    counts = set[int]()
    bytes_of = np.full(len(graph.activities), -1, np.int64)
    bytes_of[graph.waits.activity] = graph.waits.bytes
    for rank in graph.ranks:
        of_rank = passes_of(graph, rank)
        for chosen in _before_steps(of_rank):
            reductions = of_rank.reductions[chosen]
            counts.add(_times(bytes_of[reductions], of_rank.asked[chosen], of_rank))
            rows.append(reductions)
    if len(counts) != 1 or min(counts) < 2:
        return None
    return RepeatedReductions(np.concatenate(rows), counts.pop())


def _before_steps(of_rank: PassesOfRank) -> Iterator[Ints]:
    """Yield the positions of the all-reduces before each step of the optimizer whose interval is whole."""
    steps = len(of_rank.optimizer)
    interval = np.searchsorted(of_rank.optimizer, of_rank.asked)
    is_closed = interval < steps  # reductions after the last step may go on after the recording
    for number in np.unique(interval[is_closed]).tolist():
        is_cut = number == 0 and steps > 1  # the first interval may have begun before the recording
        if not is_cut:
            yield np.flatnonzero(interval == number)


def passes_of(graph: DependencyGraph, rank: int, ops: Collection[str] = _ALL_REDUCE) -> PassesOfRank:
    """Return the reductions of one rank, and the moments at which its passes compute.

    Args:
        graph: the job.
        rank: the rank.
        ops: the operations that count as reductions.
    """
    acts = graph.activities
    here = acts.rank == rank
    on_host = here & ~acts.on_device
    reductions = _communication(graph, here, ops)
    is_caused = acts.on_device[reductions] & (acts.cause[reductions] >= 0)
    asking = np.where(is_caused, acts.cause[reductions], reductions)
    asked = acts.start[asking]
    order = np.argsort(asked, kind="stable")
    steps = on_host & names_that(is_optimizer, graph.names)[acts.name]
    is_node = names_that(is_backward, graph.names) | names_that(is_autograd_node, graph.names)
    nodes = here & (acts.kind == ActivityKind.OP) & is_node[acts.name]
    products = on_host & names_that(is_product, graph.names)[acts.name]
    products &= ~graph.tree.inside(nodes)
    return PassesOfRank(
        reductions=reductions[order],
        asked=asked[order],
        optimizer=np.sort(acts.start[steps]),
        backward=np.sort(acts.start[nodes]),
        forward=np.sort(acts.start[products]),
    )


def _communication(graph: DependencyGraph, here: Mask, ops: Collection[str]) -> Ints:
    """Return the communication among some activities that does some operations."""
    acts = graph.activities
    is_wanted = names_that(lambda name: collective_op(name) in ops, graph.names)[acts.name]
    return np.flatnonzero(here & is_wanted & of_kinds(acts.kind, COMMUNICATION))


def _times(sizes: Ints, asked: Array, of_rank: PassesOfRank) -> int:
    """Return into how many equal groups some all-reduces fall, with a forward and a backward pass between two groups.

    Args:
        sizes: bytes of each all-reduce, in the order in which they were asked for; -1 where unknown.
        asked: when each all-reduce was asked for.
        of_rank: the passes of the rank.
    """
    nodes = np.searchsorted(of_rank.backward, asked)
    products = np.searchsorted(of_rank.forward, asked)
    if not are_behind_backward(asked, of_rank).all():  # gradients are reduced while, or after, they are computed
        return 1
    for times in range(len(sizes), 1, -1):
        if len(sizes) % times:
            continue
        nodes_between = _between(nodes, times)
        products_between = _between(products, times)
        has_passes = bool((products_between > 0).all() and (nodes_between > 0).all())
        if has_passes and _are_alike(sizes, nodes_between, times):
            return times
    return 1


def are_behind_backward(asked: Array, of_rank: PassesOfRank) -> Mask:
    """Return which reductions are asked for behind an operator of a backward pass, not of a forward pass.

    Args:
        asked: when each reduction was asked for.
        of_rank: the passes of the rank.
    """
    last_backward = _last_before(of_rank.backward, asked)
    last_forward = _last_before(of_rank.forward, asked)
    return np.asarray(last_backward > last_forward)


def _last_before(moments: Array, until: Array) -> Array:
    """Return the last moment before each time; the least number for none."""
    place = np.searchsorted(moments, until) - 1
    none = np.iinfo(np.int64).min
    if not len(moments):
        return np.full(len(until), none)
    return np.where(place >= 0, moments[np.maximum(place, 0)], none)


def _between(counts: Ints, times: int) -> Ints:
    """Return how many operators begin between each group of all-reduces and the next group.

    Args:
        counts: for each all-reduce, how many of the operators began before it.
        times: the number of groups.
    """
    groups = counts.reshape(times, -1)
    first = groups[1:, 0]
    last_before = groups[:-1, -1]
    return first - last_before


def _are_alike(sizes: Ints, nodes_between: Ints, times: int) -> bool:
    """Return whether groups of all-reduces have equal sizes.

    Where sizes were not recorded, groups are alike that have the same number of operators of the backward pass between.

    Args:
        sizes: bytes of each all-reduce; -1 where unknown.
        nodes_between: how many operators of the backward pass begin between each group and the next group.
        times: the number of groups.
    """
    groups = np.sort(sizes.reshape(times, -1), axis=1)
    if (groups != groups[0]).any():
        return False
    is_unknown = bool((sizes <= 0).any())
    return not is_unknown or len(np.unique(nodes_between)) == 1
