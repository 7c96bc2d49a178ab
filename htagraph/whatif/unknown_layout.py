"""Tensor parallel ranks in a recording: which reductions are of activations, and which work ranks share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from htagraph.core import naming
from htagraph.core.arrays import Array, Ints, Mask, coded
from htagraph.core.kernels import kernel_family, kernel_kind
from htagraph.core.kinds import EdgeKind, KernelKind
from htagraph.core.statistics import middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tree import asked_at
from htagraph.queries.weights import Unsure, of_kind

__all__ = [
    "REDUCTIONS",
    "counted",
    "in_forward_pass",
    "normalizes",
    "of_undecided",
    "opens_layout",
    "shorter_if_they_stay",
    "unshared_work",
]

REDUCTIONS: Final = ("all_reduce", "reduce_scatter")
"""Operations that add up values of ranks: gradients, or activations of tensor parallel ranks."""
_MAY_BE_WHOLE: Final = (KernelKind.ELEMENTWISE, KernelKind.REDUCTION, KernelKind.INDEX, KernelKind.COPY)
"""Work that tensor parallel ranks share only between products that they share: activation functions and softmax, but
not residual sums, embeddings and losses. Source: Megatron-LM (Shoeybi et al. 2019), section 3."""


def of_undecided(graph: DependencyGraph, unlabelled: Collection[str]) -> Mask:
    """Return True for each collective of a group that may be tensor parallel or not.

    The recording then shows no forward pass in which reductions could lie: neither modules nor forward operators with
    their backward operators, as in recordings of devices alone, and without gradients.

    Args:
        graph: a job with matched collectives.
        unlabelled: labels of groups that name no axis.
    """
    matches = graph.matches
    assert matches is not None  # the job has transfers
    modules = naming.names_that(naming.is_module_frame, graph.names)
    has_modules = modules[graph.activities.name].any()
    has_passes = of_kind(graph, EdgeKind.AUTOGRAD).any()
    if has_modules or has_passes:
        return np.zeros(matches.count, np.bool_)
    labels = np.array(matches.group)
    reduces = np.isin(matches.op, REDUCTIONS)
    is_unlabelled = np.isin(labels, list(unlabelled))
    return is_unlabelled & np.isin(labels, labels[reduces])


def in_forward_pass(graph: DependencyGraph, call: Ints) -> Mask:
    """Return True for each member of a collective that was asked for between two forward operators.

    Only pairs of a forward and a backward operator count: gradients are reduced behind backward operators.

    Args:
        graph: a job with matched collectives.
        call: the operator around each member, or -1.
    """
    edges = graph.edges
    is_autograd = of_kind(graph, EdgeKind.AUTOGRAD)
    rows = np.flatnonzero(is_autograd)
    forward = edges.source[rows] >> 1
    backward = edges.target[rows] >> 1
    begins = np.concatenate((forward, backward, _requests(graph, call)))
    time = graph.time[2 * begins]
    ranks = graph.activities.rank[begins]
    order = np.lexsort((time, ranks))
    rank = ranks[order]
    is_forward = order < len(rows)
    is_operator = order < 2 * len(rows)
    place = np.arange(len(order))
    last = np.maximum.accumulate(np.where(is_operator, place, 0))
    later = np.where(is_operator, place, len(order) - 1)[::-1]
    following = np.minimum.accumulate(later)[::-1]
    between = is_forward[last] & is_forward[following]
    between &= (rank[last] == rank) & (rank[following] == rank)
    is_between = np.empty(len(order), np.bool_)
    is_between[order] = between
    return is_between[2 * len(rows) :]


def _requests(graph: DependencyGraph, call: Ints) -> Ints:
    """Return the operator that asked for each member of a collective: its call, or that of a thread; else itself."""
    assert graph.matches is not None  # the job has transfers
    members = graph.matches.activity.astype(np.int64)
    edge = asked_at(graph, members)
    caller = np.where(edge >= 0, graph.edges.source[edge] >> 1, members)
    return np.where(call >= 0, call, caller)


def shorter_if_they_stay(recorded: Array, least: Array, activities: Ints, vertices: Ints) -> Unsure:
    """Return how much shorter the times of groups may be than a model says at least, if the groups stay.

    Args:
        recorded: times as recorded, of activities, then of vertices, ns.
        least: the least times that the model says, ns.
        activities: transfers of the groups.
        vertices: vertices whose pauses are waits of the groups.
    """
    positive = np.maximum(least, 1)
    shares = np.minimum(recorded / positive, 1)
    high = np.ones(len(shares))
    return Unsure(activities, shares, high, vertices, of_layout=True)


def normalizes(name: str) -> bool:
    """Return True for the name of work that normalizes activations."""
    return kernel_family(name) == "norm"


def unshared_work(graph: DependencyGraph, works: Mask, rows: Ints, factor: float) -> Unsure:
    """Return how far work is off if no tensor parallel rank shares it.

    Work that takes longer than norms do goes over larger tensors than the activations that ranks have as a whole, like
    the scores of attention: it is shared.

    Args:
        graph: the job.
        works: which activities compute.
        rows: work that is taken to be shared.
        factor: its share of the recorded work.
    """
    acts = graph.activities
    is_norm = naming.names_that(normalizes, graph.names)
    norms = np.flatnonzero(works & is_norm[acts.name])
    lower, upper = middles(acts.duration[norms], coded(acts.name[norms]))
    usual_ns = (lower + upper) / 2
    longest_ns = usual_ns.max() if len(norms) else np.inf
    kinds = naming.names_that(lambda name: kernel_kind(name) in _MAY_BE_WHOLE, graph.names)
    is_short = acts.duration[rows] <= longest_ns
    is_wanted = kinds[acts.name[rows]]
    whole = rows[is_wanted & is_short]
    times = np.full(len(whole), 1 / factor)
    low = np.minimum(times, 1)
    high = np.maximum(times, 1)
    return Unsure(whole, low, high, of_layout=True)


def counted(doubts: Sequence[Unsure], *, of_layout: bool) -> list[Unsure]:
    """Return the doubts of models, and with `of_layout` the doubts of the layout, too."""
    return [doubt for doubt in doubts if of_layout or not doubt.of_layout]


def opens_layout(doubts: Sequence[Unsure], *, longer: bool) -> bool:
    """Return True if the layout of the job leaves open a longer or a shorter time."""
    ends = [doubt.high if longer else doubt.low for doubt in doubts if doubt.of_layout]
    return any(bool((end != 1).any()) for end in ends)
