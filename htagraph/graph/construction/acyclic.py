"""Edges that may run in circles → edges that do not: impossible dependencies are dropped and counted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from htagraph.core.issues import Issue
from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["acyclic"]

_CHAINS = (EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.STREAM)
"""The order in which each lane did its work: never in a circle, and never in doubt."""
_MAX_ROUNDS = 64
"""Edges on a path within one moment that the cheap proof follows; longer ones are left to the general search, so that
only time depends on it. Chosen; doubled, no result changes."""


def acyclic(job: Job, edges: Edges) -> tuple[Edges, tuple[Issue, ...]]:
    """Return the edges without those that close a circle, and what was dropped.

    Circles come from edges against time, which clock errors excuse, and from dependencies of empty activities at one
    moment. Of the edges on circles the least confident go first: inferred before observed, against time before in time.
    """
    if _runs_forward(job, edges):
        return edges, ()
    dropped: list[Edges] = []
    while True:
        on_circle = _on_circles(2 * len(job.activities), edges)
        suspects = np.flatnonzero(on_circle & ~np.isin(edges.kind, _CHAINS))
        if not len(suspects):
            return edges, _issues(job, dropped)
        doubt = 2 * (100 - edges.confidence[suspects].astype(np.int64)) + (edges.lag[suspects] < 0)
        worst = suspects[doubt == doubt.max()]
        dropped.append(edges.take(worst))
        stays = np.ones(len(edges), np.bool_)
        stays[worst] = False
        edges = edges.take(stays)


def _runs_forward(job: Job, edges: Edges) -> bool:
    """Return whether the times alone prove that there is no circle; cheap, and true of most traces.

    Where no edge runs back in time, a circle can only lie within one moment: the edges inside moments are peeled from
    their sources until none is left.
    """
    lasts = job.moment(edges.target) - job.moment(edges.source)
    if len(lasts) and lasts.min() < 0:
        return False
    source, target = edges.source[lasts == 0], edges.target[lasts == 0]
    waits = np.zeros(2 * len(job.activities), np.bool_)
    for _ in range(_MAX_ROUNDS):
        if not len(source):
            return True
        waits[target] = True
        left = waits[source]
        waits[target] = False
        source, target = source[left], target[left]
    return False


def _on_circles(count: int, edges: Edges) -> np.ndarray:
    """Return which edges lie on a circle or between two: neither end can be ordered from the front or from the back."""
    from htagraph.core import traverse  # numba takes a moment to load

    stuck = np.ones(count, np.bool_)
    for source, target in ((edges.source, edges.target), (edges.target, edges.source)):
        offsets, order = traverse.counting_order(source, count)
        ordered = traverse.topological_order(offsets, target[order])
        if len(ordered) == count:
            return np.zeros(len(edges), np.bool_)
        stuck[ordered] = False
    return stuck[edges.source] & stuck[edges.target]


def _issues(job: Job, dropped: list[Edges]) -> tuple[Issue, ...]:
    rank = job.activities.rank
    found = Counter(
        (int(max(rank[target // 2], rank[source // 2])), int(kind))  # a JOIN has no rank
        for edges in dropped
        for source, target, kind in zip(edges.source, edges.target, edges.kind, strict=True)
    )
    return tuple(
        Issue(
            str(job.traces[owner].path) if owner in job.traces else "", "cycle_broken",
            f"{EdgeKind(kind).label} dependencies that lead in a circle; left out", count, owner,
        )
        for (owner, kind), count in sorted(found.items())
    )  # fmt: skip
