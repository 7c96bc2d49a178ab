"""Communication on host threads (gloo) in changes of overlap: what asked for it, and what data it needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import is_gradient_ready, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import of_kind

__all__ = ["asked_at", "first_gradient", "next_moment", "waits_for"]


def asked_at(graph: DependencyGraph, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the edge from the operator that asked for each communication to its start; -1 if none is known."""
    acts, edges = graph.activities, graph.edges
    from_elsewhere = acts.lane[edges.source >> 1] != acts.lane[edges.target >> 1]
    starts = from_elsewhere & (edges.target % 2 == 0) & of_kind(graph, EdgeKind.THREAD)
    starts &= ~of_kinds(acts.kind[edges.source >> 1], COMMUNICATION)
    edge = np.full(len(acts), -1, np.int64)
    candidates = np.flatnonzero(starts)
    candidates = candidates[np.argsort(edges.confidence[candidates], kind="stable")]  # the surest is written last
    edge[edges.target[candidates] >> 1] = candidates
    return edge[rows]


def first_gradient(graph: DependencyGraph, rows: npt.NDArray[np.int64], asked: Array) -> npt.NDArray[np.int64]:
    """Return the operator whose end made the first of the gradients ready that each communication carries; -1 for none.

    These are the gradients that became ready on its rank since the last communication before it was asked for.

    Args:
        graph: the job.
        rows: the communication.
        asked: when each was asked for, ns on the common clock.
    """
    acts, time = graph.activities, graph.time
    ready = np.flatnonzero((acts.kind == ActivityKind.OP) & names_that(is_gradient_ready, graph.names)[acts.name])
    out = np.full(len(rows), -1, np.int64)
    for rank in np.unique(acts.rank[rows]).tolist():
        of_rank = np.flatnonzero(acts.rank[rows] == rank)
        of_rank = of_rank[np.argsort(asked[of_rank], kind="stable")]
        gradients = ready[acts.rank[ready] == rank]
        gradients = gradients[np.argsort(time[2 * gradients + 1], kind="stable")]
        if not len(gradients):
            continue
        # one that was under way at the last communication was part of that one
        before = np.concatenate(([np.iinfo(np.int64).min], asked[of_rank][:-1]))
        first = np.searchsorted(np.maximum.accumulate(time[2 * gradients]), before, side="right")
        gradient = gradients[np.minimum(first, len(gradients) - 1)]
        some = (first < len(gradients)) & (time[2 * gradient + 1] <= asked[of_rank])
        out[of_rank[some]] = gradient[some]
    return out


def next_moment(graph: DependencyGraph, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the vertex that follows the end of each activity on its thread; -1 for none."""
    acts, edges = graph.activities, graph.edges
    same = of_kind(graph, EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.DATALOADER)
    same &= acts.lane[edges.source >> 1] == acts.lane[edges.target >> 1]
    behind = np.full(graph.vertex_count, -1, np.int64)
    behind[edges.source[same]] = edges.target[same]
    return behind[2 * rows + 1]


def waits_for(graph: DependencyGraph, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return True for each edge by which another thread waits for the end of communication; steps do not count."""
    acts, edges = graph.activities, graph.edges
    ends = np.zeros(graph.vertex_count, np.bool_)
    ends[2 * rows + 1] = True
    other = acts.lane[edges.source >> 1] != acts.lane[edges.target >> 1]
    kept = (*COMMUNICATION, ActivityKind.JOIN, ActivityKind.BOUNDARY, ActivityKind.STEP)
    return np.asarray(ends[edges.source] & other & ~of_kinds(acts.kind[edges.target >> 1], kept))
