"""P2P: a send and its receive end together, once both have started and the data has come."""

from __future__ import annotations

from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.meetings import meetings

__all__ = ["p2p"]


def p2p(job: Job) -> Edges:
    """Return the edges of all sends and receives between ranks: a collective of two members each."""
    return meetings(job, EdgeKind.P2P, pairs=True)
