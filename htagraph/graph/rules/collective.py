"""COLLECTIVE: no member of a collective ends before those it waits for have arrived, and the data has come."""

from __future__ import annotations

from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.meetings import meetings

__all__ = ["collective"]


def collective(job: Job) -> Edges:
    """Return the edges of all collectives between ranks but sends and receives."""
    return meetings(job, EdgeKind.COLLECTIVE, pairs=False)
