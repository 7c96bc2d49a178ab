"""Roles: which ranks do the same work by design, so that one may be compared with another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["rank_roles", "roles_among"]

_PAIR_OPERATION = "send_recv"
_MIN_EXCHANGING = 3
"""Ranks that exchange in turn, at least: of two that send to each other, each sends as much as the other, be they a
ring or stages. Doubled, a ring of three to five ranks counts as a pipeline, and its ranks are not compared."""
_MIN_SHARED = 0.7
"""Share of the usual activities of a role that a rank has too, at least: others run another program.

Chosen: ranks of one program differ by what shapes make of kernels' names, and a straggler may do more, but not less.
Doubled, nobody has a role."""


def rank_roles(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (a number per rank, shared by ranks that do the same work by design, a number shared by a pipeline's).

    Ranks that send to each other one by one (the stages of a pipeline) have different roles; the n-th rank of one
    pipeline has the role of the n-th of another. The first and the last stage of three or more send and receive less
    than those between; where all ranks send and receive as much in a step, in a ring or all to all, they are no stages
    but do the same work. A rank that lacks much of what the others of its role do runs something else, and has a role
    of its own.

    Args:
        graph: the job.
    """
    return roles_among(graph, partial(_counts, graph))


def roles_among(
    graph: DependencyGraph, counts: Callable[[Array], Array]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return what `rank_roles` does, of a job whose operators are counted elsewhere.

    Args:
        graph: the job, of which only the sends and receives between ranks are read.
        counts: how often operators of each name occur in a step of some ranks, a row per rank, given the positions of
            the ranks in `graph.ranks`.
    """
    size = len(graph.ranks)
    pipeline = _pipelines(graph)
    members = np.bincount(pipeline, minlength=size)
    place = np.zeros(size, np.int64)
    for number in np.flatnonzero(members > 1).tolist():
        place[pipeline == number] = np.arange(members[number])
    role = members[pipeline] * size + place
    for number in np.unique(role).tolist():
        rows = np.flatnonzero(role == number)
        if len(rows) > 1:
            other = rows[~_same_program(counts(rows))]
            role[other] = -1 - other
    return np.unique(role, return_inverse=True)[1].astype(np.int64), pipeline


def _pipelines(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return a number per rank, which ranks share that sends between pairs connect, unless they exchange in turn."""
    number = np.arange(len(graph.ranks))
    pairs, step = _pairs(graph)
    for one, other in np.unique(pairs, axis=0).tolist():
        number[number == number[other]] = number[one]
    sends = _per_step(pairs, step, len(number))
    for each in np.unique(number).tolist():
        rows = np.flatnonzero(number == each)
        if len(rows) >= _MIN_EXCHANGING and len(np.unique(sends[rows])) == 1:
            number[rows] = rows
    return number


def _pairs(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (the positions of the two ranks of each send that was matched, the step that it is in)."""
    matches, acts = graph.matches, graph.activities
    if matches is None:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    size = np.bincount(matches.collective, minlength=matches.count)
    pairs = np.array([op == _PAIR_OPERATION for op in matches.op], np.bool_) & (size == 2)
    rows = np.flatnonzero(pairs[matches.collective])
    rows = rows[np.argsort(matches.collective[rows], kind="stable")]
    place = np.searchsorted(graph.ranks, acts.rank[matches.activity[rows]]).reshape(-1, 2)
    return place, acts.step[matches.activity[rows]].reshape(-1, 2).max(axis=1).astype(np.int64)


def _per_step(pairs: Array, step: Array, ranks: int) -> npt.NDArray[np.float64]:
    """Return in how many sends and receives each rank takes part in a step, median over the steps with any.

    The median, as a recording that begins late or ends early lacks those of some steps.
    """
    steps, at = np.unique(step, return_inverse=True)
    counts = np.zeros((ranks, len(steps)))
    np.add.at(counts, (pairs, at.ravel()[:, None]), 1)
    return np.median(counts, axis=1) if len(steps) else np.zeros(ranks)


def _counts(graph: DependencyGraph, places: Array) -> npt.NDArray[np.float64]:
    """Return how many operators of each name some ranks have in a step, or kernels in a job without operators.

    In a step, as the recording of one rank may have fewer steps than that of another.
    """
    acts = graph.activities
    kind = ActivityKind.OP if (acts.kind == ActivityKind.OP).any() else ActivityKind.COMPUTATION
    counts = np.zeros((len(places), len(graph.names)))
    for row, place in enumerate(places.tolist()):
        of_rank = acts.of_rank(graph.ranks[place])
        alike = acts.kind[of_rank] == kind
        names, steps = acts.name[of_rank][alike], acts.step[of_rank][alike]
        if (steps >= 0).any():
            names, steps = names[steps >= 0], steps[steps >= 0]
        counts[row] = np.bincount(names, minlength=len(graph.names)) / max(len(np.unique(steps)), 1)
    return counts


def _same_program(counts: Array) -> npt.NDArray[np.bool_]:
    """Return which ranks have most of what is usual among them, or for two ranks of what the one that does less has."""
    usual = np.median(counts, axis=0) if len(counts) > 2 else counts.min(axis=0)
    total = usual.sum() if len(counts) > 2 else counts.sum(axis=1).min()
    if not total:  # nothing is usual, and so nothing is lacking
        return np.ones(len(counts), np.bool_)
    shared = np.minimum(counts, usual).sum(axis=1) / total
    return np.asarray(shared >= _MIN_SHARED)
