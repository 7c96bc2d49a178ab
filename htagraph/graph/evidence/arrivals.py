"""The edges of collectives, sends and receives: from arrivals to JOINs, and from JOINs to ends."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["meetings"]

_PAIR_OPERATION = "send_recv"
_CONFIDENCE = {"comms_id": 100, "pg+seq": 100, "pg+order": 95, "lane+order": 90}
"""Percent, by the key that matched the members: ids prove a match, while matches by order in a named group or on a
stream are only tested by time. Chosen. It is shown, and `acyclic` drops the least confident edge of a cycle. They
cannot be doubled."""


def meetings(job: Job, kind: EdgeKind, *, pairs: bool) -> Edges:
    """Return the edges of all collectives: from arrivals to JOINs, from JOIN to JOIN, and from JOINs to ends.

    The lag from a JOIN to an end is the member's transfer time: from the JOIN, or from its own start if that is later,
    to its end. A member whose arrival no JOIN waits for (a receiver of a broadcast) has an edge with the same lag from
    its own start to its end.

    Args:
        job: the job with its matches.
        kind: the kind of the edges.
        pairs: whether to return sends and receives; if not, all other collectives.
    """
    none = np.empty(0, np.int32)
    if job.matches is None or not job.matches.count:
        return Edges.of(none, none, 0, kind, Provenance.INFERRED)
    matches = job.matches
    wanted = (np.array([op == _PAIR_OPERATION for op in matches.op], np.bool_) == pairs)[matches.collective]
    sure = np.array([_CONFIDENCE.get(key, 90) for key in matches.key], np.int8)[matches.collective]
    waits, feeds = wanted & (matches.join >= 0), wanted & (matches.feeds >= 0)
    member, join = matches.activity[waits].astype(np.int64), matches.join[waits].astype(np.int64)
    ends = job.moment(2 * member + 1)
    awaited = np.maximum(job.moment(2 * join), job.moment(2 * member))
    lag = np.maximum(0, ends - awaited)
    own = matches.feeds[waits] < 0  # no JOIN waits for this arrival, but the member's own end does
    arrives = 2 * matches.activity[feeds].astype(np.int64)
    chained = _chained(matches.join[waits], matches.collective[waits])
    joins = np.unique(join)
    at_join = np.zeros(len(joins), np.int8)
    at_join[np.searchsorted(joins, join)] = sure[waits]
    parts = (
        (arrives, 2 * matches.feeds[feeds].astype(np.int64), 0, -1, sure[feeds]),
        (2 * chained[0], 2 * chained[1], 0, -1, at_join[np.searchsorted(joins, chained[1])]),
        (2 * join, 2 * member + 1, lag, member, sure[waits]),
        (2 * member[own], 2 * member[own] + 1, lag[own], member[own], sure[waits][own]),
    )
    edges = []
    for source, target, cost, owner, confidence in parts:
        part = Edges.of(source, target, cost, kind, Provenance.INFERRED, activity=owner, confidence=confidence)
        part.provenance[confidence == 100] = Provenance.OBSERVED  # matched by ids
        edges.append(part)
    edges.append(Edges.of(2 * joins, 2 * joins + 1, 0, EdgeKind.BODY, Provenance.INFERRED, activity=joins))
    return Edges.concatenate(edges)


def _chained(join: np.ndarray, collective: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (JOINs that have a next JOIN in their collective, that next JOIN); JOINs are numbered in order of time."""
    joins, first = np.unique(join.astype(np.int64), return_index=True)
    owner = collective[first]
    same = owner[1:] == owner[:-1]
    return joins[:-1][same], joins[1:][same]
