"""Edges of the rules → edges that agree with the recorded times: lags are reduced, impossible edges dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from htagraph.core.issues import Issue
from htagraph.core.kinds import BLOCKING, LAUNCHES, EdgeKind, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.tolerances import LIMITS

__all__ = ["fit"]

_TWO_CLOCKS = (EdgeKind.STEP, *BLOCKING)


def fit(job: Job, edges: Edges) -> tuple[Edges, tuple[Issue, ...]]:
    """Return the edges with lag = min(lag, recorded time from source to target), and what was refused as issues.

    No target then comes before its source plus the lag, so a replay reproduces the recorded times. An edge whose target
    comes before its source by more than a tolerance is a wrong inference or a wrong record, and is dropped, unless its
    rule says that the call returns before the work ends (a negative lag). Work that seems to start before its own
    launch shows how far the clocks of host and device disagree; it is kept and reported.
    """
    observed = job.moment(edges.target) - job.moment(edges.source)
    tolerance = np.full(len(EdgeKind), LIMITS.tick_ns)
    tolerance[list(_TWO_CLOCKS)] = LIMITS.two_clocks_ns
    tolerance[list(LAUNCHES)] = LIMITS.proven_by_id_ns
    back = np.flatnonzero(observed < 0)  # few
    kind = edges.kind[back]
    early = np.where(of_kinds(kind, BLOCKING), np.minimum(edges.lag[back], 0), 0)
    possible = np.ones(len(edges), np.bool_)
    possible[back] = observed[back] >= early - tolerance[kind]
    refused = _refused(job, edges, possible) + _early(job, edges, observed, possible)
    if not possible.all():
        edges, observed = edges.take(possible), observed[possible]
    return replace(edges, lag=np.minimum(edges.lag, observed)), refused


def _refused(job: Job, edges: Edges, possible: np.ndarray) -> tuple[Issue, ...]:
    bad = np.flatnonzero(~possible)
    rank = job.activities.rank
    of_edge = np.maximum(rank[edges.target[bad] // 2], rank[edges.source[bad] // 2])  # a JOIN has no rank
    by_rank_and_kind = Counter(zip(of_edge.tolist(), edges.kind[bad].tolist(), strict=True))
    return tuple(
        Issue(
            str(job.traces[owner].path) if owner in job.traces else "", "edge_refused",
            f"{EdgeKind(kind).label} dependencies that the recorded times contradict; left out", count, owner,
        )
        for (owner, kind), count in sorted(by_rank_and_kind.items())
    )  # fmt: skip


def _early(job: Job, edges: Edges, observed: np.ndarray, possible: np.ndarray) -> tuple[Issue, ...]:
    early = possible & (edges.kind == EdgeKind.LAUNCH) & (observed < 0)
    rank = job.activities.rank[edges.target[early] // 2]
    owners, member, counts = np.unique(rank, return_inverse=True, return_counts=True)
    most = np.zeros(len(owners), np.int64)
    np.maximum.at(most, member, -observed[early])
    return tuple(
        Issue(
            str(job.traces[owner].path), "negative_launch_latency",
            f"work that starts before its launch, by up to {late_by / 1000:.1f} µs (clock error); kept", count, owner,
        )
        for owner, late_by, count in zip(owners.tolist(), most.tolist(), counts.tolist(), strict=True)
    )  # fmt: skip
