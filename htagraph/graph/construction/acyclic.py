"""Edges that may form cycles → edges that do not: impossible dependencies are dropped and counted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from htagraph.core.issues import Issue
from htagraph.core.kinds import EdgeKind, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.tolerances import LIMITS

__all__ = ["acyclic"]

_CHAINS = (EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.STREAM)
"""The kinds that order each thread and stream by itself: they never form a cycle and are never dropped."""


def acyclic(job: Job, edges: Edges) -> tuple[Edges, tuple[Issue, ...]]:
    """Return the edges without cycles, and what was dropped as issues.

    Cycles come from edges that run back in time by less than the clock error, and from dependencies between activities
    of length 0 at one moment. Of the edges on cycles, the least confident are dropped first; among those, edges that
    run back in time.
    """
    if _runs_forward(job, edges):
        return edges, ()
    dropped: list[Edges] = []
    while True:
        on_circle = _on_circles(2 * len(job.activities), edges)
        suspects = np.flatnonzero(on_circle)
        suspects = suspects[~of_kinds(edges.kind[suspects], _CHAINS)]
        if not len(suspects):
            return edges, _issues(job, dropped)
        doubt = 2 * (100 - edges.confidence[suspects].astype(np.int64)) + (edges.lag[suspects] < 0)
        worst = suspects[doubt == doubt.max()]
        dropped.append(edges.take(worst))
        stays = np.ones(len(edges), np.bool_)
        stays[worst] = False
        edges = edges.take(stays)


def _runs_forward(job: Job, edges: Edges) -> bool:
    """Return whether the times alone prove that there is no cycle; this is fast, and True for most traces.

    If no edge runs back in time, a cycle can only be within one moment. The edges within moments whose source has no
    incoming one are removed, round by round, until none is left.
    """
    lasts = job.moment(edges.target) - job.moment(edges.source)
    if len(lasts) and lasts.min() < 0:
        return False
    source, target = edges.source[lasts == 0], edges.target[lasts == 0]
    waits = np.zeros(2 * len(job.activities), np.bool_)
    for _ in range(LIMITS.tried):
        if not len(source):
            return True
        waits[target] = True
        left = waits[source]
        waits[target] = False
        source, target = source[left], target[left]
    return False


def _on_circles(count: int, edges: Edges) -> np.ndarray:
    """Return which edges are on a cycle or between two cycles: no topological order, from either end, reaches them."""
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
    by_rank_and_kind = Counter(
        (int(max(rank[target // 2], rank[source // 2])), int(kind))  # a JOIN has no rank
        for edges in dropped
        for source, target, kind in zip(edges.source, edges.target, edges.kind, strict=True)
    )
    return tuple(
        Issue(
            str(job.traces[owner].path) if owner in job.traces else "", "cycle_broken",
            f"{EdgeKind(kind).label} dependencies that lead in a circle; left out", count, owner,
        )
        for (owner, kind), count in sorted(by_rank_and_kind.items())
    )  # fmt: skip
