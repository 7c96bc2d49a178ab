"""Collectives on the streams with most of the computation of their rank: there, computation waits for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import MOST
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import lacks_members

__all__ = ["OnComputeStream", "collectives_on_compute_streams"]


@dataclass(frozen=True)
class OnComputeStream:
    """Collectives on streams with most of the computation of their rank."""

    activity: Ints
    """The members of collectives on these streams, the longest first."""
    time_ns: int
    """How long these members take on the rank where they take longest, with waits for other ranks, ns."""
    share: float
    """This as a share of the time of all collectives on devices, from 0 to 1."""
    is_whole: bool
    """Whether all members of these collectives are in the graph, so that their waits are known."""


def collectives_on_compute_streams(graph: DependencyGraph) -> OnComputeStream | None:
    """Return the collectives on streams that have most of the computation of their rank; None where there are none.

    Example:
        >>> import htagraph as hg
        >>> collectives_on_compute_streams(hg.load("data/demo")) is None
        True
    """
    acts = graph.activities
    computes = _time_of(graph, ActivityKind.COMPUTATION)
    rank = np.array([lane.rank for lane in graph.lanes], np.int64)
    of_rank = np.zeros(max(graph.ranks, default=0) + 1)
    np.add.at(of_rank, rank, computes)
    is_main = (computes > 0) & (computes > MOST * of_rank[rank])
    communicates = np.flatnonzero(acts.on_device & (acts.kind == ActivityKind.COMMUNICATION))
    rows = communicates[is_main[acts.lane[communicates]]]
    if not len(rows):
        return None
    by_rank = np.bincount(acts.rank[rows], acts.duration[rows])
    longest = np.argsort(-acts.duration[rows], kind="stable")
    return OnComputeStream(
        activity=rows[longest],
        time_ns=int(by_rank.max()),
        share=float(acts.duration[rows].sum() / max(acts.duration[communicates].sum(), 1)),
        is_whole=not lacks_members(graph)[rows].any(),
    )


def _time_of(graph: DependencyGraph, kind: ActivityKind) -> Array:
    """Return how long each lane runs device work of a kind, ns."""
    acts = graph.activities
    rows = np.flatnonzero(acts.on_device & (acts.kind == kind))
    return np.bincount(acts.lane[rows], acts.duration[rows], len(graph.lanes))
