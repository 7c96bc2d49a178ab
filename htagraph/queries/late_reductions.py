"""Reductions of gradients that begin when the backward pass is over, though some gradients were ready before."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.intervals import Intervals, intersection, length, union
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import is_autograd_node, is_backward, is_gradient_ready, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.accumulation import PassesOfRank, are_behind_backward, passes_of

__all__ = ["LateReductions", "late_reductions"]

_REDUCTIONS: Final = frozenset({"all_reduce", "reduce_scatter"})
"""Operations that sum gradients of all ranks. Source: DistributedDataParallel and sharded optimizers of PyTorch."""


class LateReductions(NamedTuple):
    """The reductions of gradients of a job that run nearly not at all beside the backward pass."""

    activity: Ints
    """The reductions of all ranks."""
    is_all: bool
    """Whether the job communicates nothing else, on hosts, and once behind each backward pass."""


def late_reductions(graph: DependencyGraph) -> LateReductions | None:
    """Return the reductions of gradients that begin behind the backward pass; None where some run beside this pass.

    A reduction of gradients is asked for behind a backward pass in which gradients of parameters became ready, and
    before the next optimizer step or forward pass. On hosts the operators of autograd are the backward pass; on devices
    any computation beside a reduction counts.

    Example:
        >>> import htagraph as hg
        >>> late_reductions(hg.load("data/demo")) is None
        True
    """
    rows = list[Ints]()
    beside_ns = 0
    all_ns = 0
    is_once = True
    for rank in graph.ranks:
        of_rank = passes_of(graph, rank, _REDUCTIONS)
        asked = of_rank.asked
        has_gradients = _have_gradients(graph, rank, of_rank)
        reductions = of_rank.reductions[has_gradients]
        during = _during(graph, reductions)
        rows.append(reductions)
        all_ns += length(during)
        beside_ns += length(intersection(during, _work(graph, rank, reductions)))
        is_once &= _are_in_passes_of_their_own(of_rank, asked[has_gradients])
    activity = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    if not all_ns or beside_ns > (1 - LIMITS.nearly_all) * all_ns:
        return None
    communicates = of_kinds(graph.activities.kind, COMMUNICATION)
    is_all = int(communicates.sum()) == len(activity) and not graph.activities.on_device[activity].any()
    return LateReductions(activity, is_all and is_once)


def _have_gradients(graph: DependencyGraph, rank: int, of_rank: PassesOfRank) -> Mask:
    """Return which reductions are asked for behind a backward pass whose gradients no optimizer step has used."""
    acts = graph.activities
    is_ready = names_that(is_gradient_ready, graph.names)[acts.name] & (acts.rank == rank)
    ready = np.sort(graph.time[2 * np.flatnonzero(is_ready)])
    asked = of_rank.asked
    interval = np.searchsorted(of_rank.optimizer, asked)
    moments = np.append(0, of_rank.optimizer)
    begins = moments[interval]
    has_ready = np.searchsorted(ready, asked) > np.searchsorted(ready, begins)
    is_behind = are_behind_backward(asked, of_rank)
    return np.asarray(is_behind & has_ready)


def _are_in_passes_of_their_own(of_rank: PassesOfRank, asked: Ints) -> bool:
    """Return whether a forward pass, or a step of the optimizer, lies between any two of some moments."""
    forward = np.searchsorted(of_rank.forward, asked)
    optimizer = np.searchsorted(of_rank.optimizer, asked)
    passes = np.unique(
        np.stack([forward, optimizer]),
        axis=1,
    )
    return passes.shape[1] == len(asked)


def _during(graph: DependencyGraph, rows: Ints) -> Intervals:
    """Return the time in which some communication of one rank runs."""
    return union(graph.time[2 * rows], graph.time[2 * rows + 1])


def _work(graph: DependencyGraph, rank: int, reductions: Ints) -> Intervals:
    """Return the time of a rank in which reductions are hidden: of its backward pass, or of computation on its device.

    Args:
        graph: the job.
        rank: the rank.
        reductions: its reductions.
    """
    acts = graph.activities
    if acts.on_device[reductions].any():
        is_work = acts.on_device & (acts.kind == ActivityKind.COMPUTATION)
    else:
        is_node = names_that(is_backward, graph.names) | names_that(is_autograd_node, graph.names)
        is_work = is_node[acts.name] & (acts.kind == ActivityKind.OP)
    rows = np.flatnonzero(is_work & (acts.rank == rank))
    return _during(graph, rows)
