"""Which activities make a rank late, and how their times compare with the peers'."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import BETWEEN_OPERATORS, short_name
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.blame import CAUSES, Blame, Chains

__all__ = ["COMPARED", "SlowWork", "largest_upstream", "slow_work"]

COMPARED = ("kernels", "host", "data_loading", "collective")
"""Causes that lie in activities, which peers have too."""
_LATENCIES = {"host": BETWEEN_OPERATORS, "launch": "launch latency", "sync": "return of blocking calls"}
"""What time is called that belongs to no activity, by cause."""
_STANDS_OUT = 1.5
"""By what factor activities of one name are slower than all of their cause, at least, to be compared alone.

Chosen; only words depend on it. Doubled, the evidence speaks of the cause as a whole more often."""
_MAX_HOPS_BACK = 512
"""Vertices on the path to a late arrival that are searched for the activity that explains most. Chosen: bounds the time
of the search. Doubled, an activity further back can be named; charges stay the same."""


@dataclass(frozen=True)
class SlowWork:
    """The activities of one cause that make a rank late, and how their time compares with that of its peers."""

    name: str
    """The name whose activities explain most; empty if nothing does."""
    excess_ns: int
    """By how much they take longer than on the peers, on the paths to late arrivals."""
    slower: float
    """How much longer than its peers' the rank's own time in them is in all, as a share of theirs; NaN if unknown."""
    named: bool = False
    """Whether the activities of that name alone are compared, instead of all of the cause."""
    alone: bool = False
    """Whether no other rank has activities of that name there."""


def slow_work(graph: DependencyGraph, chains: Chains, blame: Blame, causes: Array) -> list[SlowWork]:
    """Return, for each rank, the activities that explain most of its lateness.

    Args:
        graph: the job.
        chains: its chains.
        blame: the charges.
        causes: the cause of each rank, an index into `CAUSES`.
    """
    path_vertices = _path_vertices(graph, chains, blame)
    none = np.zeros(0, np.int64)
    return [
        _of_rank(graph, chains, path_vertices.get(rank, none), rank, int(cause))
        for rank, cause in zip(graph.ranks, causes.tolist(), strict=True)
    ]


def _path_vertices(graph: DependencyGraph, chains: Chains, blame: Blame) -> dict[int, Array]:
    """Return for each charged rank the vertices on the paths to the late arrivals that it is charged for."""
    from htagraph.core import traverse

    offsets, sources = chains.forest
    vertices = {}
    charged = blame.cause > 0
    for rank in np.unique(blame.rank[charged]).tolist():
        ends = np.unique(2 * blame.arrival[charged & (blame.rank == rank)])
        met = np.flatnonzero(traverse.reach(offsets, sources, ends))
        vertices[int(rank)] = met[np.argsort(graph.time[met], kind="stable")]
    return vertices


def _of_rank(graph: DependencyGraph, chains: Chains, vertex: Array, rank: int, cause: int) -> SlowWork:
    """Return the activities that explain most of a cause on a rank; `vertex` are those on its late paths."""
    vertex = vertex[chains.cause[vertex] == cause] if cause else vertex[:0]
    if not len(vertex):
        return SlowWork("", 0, float("nan"))
    item = chains.item[vertex]
    in_work = (item >= 0) & (graph.activities.kind[np.maximum(item, 0)] != ActivityKind.STEP)
    label = np.where(in_work, graph.activities.name[np.maximum(item, 0)], -1)  # a step's own time is in no operator
    number, member = np.unique(label, return_inverse=True)
    excess = np.zeros(len(number), np.int64)
    np.add.at(excess, member, chains.excess[vertex])
    name, most = int(number[excess.argmax()]), int(excess.max())
    text = graph.names[name] if name >= 0 else _LATENCIES.get(CAUSES[cause], "")
    text = short_name(text) if CAUSES[cause] in ("kernels", "collective") else text
    if CAUSES[cause] not in COMPARED:
        return SlowWork(text, most, float("nan"))
    rows = np.flatnonzero((chains.about == cause) & (graph.activities.rank == rank) & ~np.isnan(chains.others))
    whole, of_name = _slower(chains, rows), rows[graph.activities.name[rows] == name]
    if len(of_name) and not chains.others[of_name].any():
        return SlowWork(text, most, whole, alone=True)
    named = _slower(chains, of_name) if name >= 0 else float("nan")
    if named > 0 and (np.isnan(whole) or named > _STANDS_OUT * whole):
        return SlowWork(text, most, named, named=True)
    return SlowWork(text, most, whole)


def _slower(chains: Chains, rows: Array) -> float:
    """Return how much longer activities take in all than their peers, as a share of theirs; NaN without peers."""
    others = float(chains.others[rows].sum())
    return float(chains.own[rows].sum()) / others - 1 if others > 0 else float("nan")


def largest_upstream(chains: Chains, blame: Blame) -> npt.NDArray[np.int64]:
    """Return for each charge the activity of its cause with the largest excess on the path to the arrival, or -1."""
    key = np.stack([blame.arrival, blame.cause], axis=1)
    pairs, member = np.unique(key, axis=0, return_inverse=True)
    activity, largest = np.full(len(pairs), -1, np.int64), np.zeros(len(pairs), np.int64)
    rows = np.flatnonzero(np.isin(pairs[:, 1], [CAUSES.index(word) for word in COMPARED]))
    at = 2 * pairs[rows, 0]
    for _ in range(_MAX_HOPS_BACK):  # all paths, one vertex further back
        better = (chains.cause[at] == pairs[rows, 1]) & (chains.item[at] >= 0) & (chains.excess[at] > largest[rows])
        activity[rows[better]], largest[rows[better]] = chains.item[at[better]], chains.excess[at[better]]
        further = chains.before[at] >= 0
        rows, at = rows[further], chains.before[at[further]]
        if not len(rows):
            break
    return activity[member.ravel()] if len(activity) else np.zeros(0, np.int64)
