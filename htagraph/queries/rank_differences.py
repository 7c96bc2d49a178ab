"""What a rank does more of than its peers, or takes longer for in all: by name, as counts and own times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, GapKind, of_kinds
from htagraph.core.naming import BETWEEN_OPERATORS
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.peers import peers as peers_of

__all__ = ["Difference", "alone_work", "rank_differences"]


@dataclass(frozen=True)
class Difference:
    """The activities of one name on a rank and on its peers, in the whole recording."""

    name: str
    own_us: float
    """Their own time on the rank, µs: without waits, and without what they enclose."""
    peers_us: float
    """The same on that of its peers where it is largest, µs: a median would hide that another rank takes as long."""
    count: int
    """How many there are on the rank."""
    peers_count: int
    """The most on any of its peers."""
    longest_us: float
    """The own time of the longest one on the rank, µs: a pause, if it is most of the difference."""

    @property
    def more_us(self) -> float:
        """How much more time it takes on the rank, µs."""
        return self.own_us - self.peers_us


def rank_differences(graph: DependencyGraph, own: Array, rank: int, peers: Array, top: int = 3) -> list[Difference]:
    """Return what takes more time on a rank than on each of its peers, the largest difference first.

    Args:
        graph: the job.
        own: own time of each activity, ns (`queries.blame.Chains.own`).
        rank: the rank.
        peers: the ranks that it is compared with.
        top: how many at most.
    """
    acts, names = graph.activities, len(graph.names)
    everyone = np.array([rank, *peers])
    place = np.full(int(max(graph.ranks)) + 2, -1)
    place[everyone] = np.arange(len(everyone))
    work = ~of_kinds(acts.kind, (*COMMUNICATION, *ADDED, ActivityKind.STEP))
    rows = np.flatnonzero(work & (place[acts.rank] >= 0))
    shape = (len(everyone), names + 1)
    cell = place[acts.rank[rows]] * shape[1] + acts.name[rows]
    gaps = np.flatnonzero(graph.gap_kind == GapKind.HOST_UNTRACED)
    gaps = gaps[place[acts.rank[gaps >> 1]] >= 0]
    cell = np.concatenate([cell, place[acts.rank[gaps >> 1]] * shape[1] + names])
    each = np.concatenate([own[rows], graph.gap[gaps]])
    longest = np.zeros(shape[0] * shape[1], np.int64)
    np.maximum.at(longest, cell, each)
    time = np.bincount(cell, each, shape[0] * shape[1]).reshape(shape) / 1000
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    most, most_often = time[1:].max(axis=0), count[1:].max(axis=0)
    largest = np.argsort(most - time[0], kind="stable")[:top]
    return [
        Difference(
            graph.names[at] if at < names else BETWEEN_OPERATORS, float(time[0, at]), float(most[at]),
            int(count[0, at]), int(most_often[at]), float(longest[at]) / 1000,  # the rank's own row is the first
        )
        for at in largest.tolist()
        if time[0, at] > most[at]
    ]  # fmt: skip


def alone_work(graph: DependencyGraph, own: Array, rank: int) -> tuple[int, float]:
    """Return (how many operators and kernels a rank has beyond those of every other, their own time in µs).

    Args:
        graph: the job.
        own: own time of each activity, ns (`queries.blame.Chains.own`).
        rank: the rank.
    """
    acts = graph.activities
    is_work = of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.COMPUTATION))
    rows = np.flatnonzero(is_work & (acts.rank == rank) & (peers_of(graph) < 0))
    return len(rows), float(own[rows].sum()) / 1000
