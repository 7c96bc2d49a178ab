"""What the rules for collectives and for sends and receives share: arrivals, JOINs, and ends behind them."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["meetings"]

_PAIR_OPERATION = "send_recv"
_CONFIDENCE = {"comms_id": 100, "pg+seq": 100, "pg+order": 95, "lane+order": 90}
"""Percent, by the key that matched the members: ids prove a match; order in a named group, and order on a stream, are
tested by time. Chosen. Shown, and used by `acyclic`."""


def meetings(job: Job, kind: EdgeKind, *, pairs: bool) -> Edges:
    """Return for each collective the edges from arrivals to its JOINs, and from there to the ends, as one kind.

    The JOINs of one collective follow each other. An end comes its transfer after the JOIN it waits for; where it is
    not told apart from waiting for the member's own arrival (broadcast), also that long after its own start.

    Args:
        job: the job with its matches.
        kind: of the edges.
        pairs: whether to return sends and receives, else all others.
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
    own = matches.feeds[waits] < 0  # nobody waits for this arrival, but its own end does
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
        made = Edges.of(source, target, cost, kind, Provenance.INFERRED, activity=owner, confidence=confidence)
        made.provenance[confidence == 100] = Provenance.OBSERVED  # ids say so
        edges.append(made)
    edges.append(Edges.of(2 * joins, 2 * joins + 1, 0, EdgeKind.BODY, Provenance.INFERRED, activity=joins))
    return Edges.concatenate(edges)


def _chained(join: np.ndarray, collective: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the JOINs that have a successor in their collective, and the successors; they are numbered in order."""
    joins, first = np.unique(join.astype(np.int64), return_index=True)
    owner = collective[first]
    same = owner[1:] == owner[:-1]
    return joins[:-1][same], joins[1:][same]
