"""COLLECTIVE: start of each member of a collective → the collective's JOIN → end of each member that waits for it.

The lag into the JOIN is 0, the lag out of it is the transfer time. Members are matched across ranks by ids or order.
"""

from __future__ import annotations

from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.arrivals import meetings
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["collective"]


def collective(job: RecordedJob) -> Edges:
    """Return the edges of all matched collectives except sends and receives."""
    return meetings(job, EdgeKind.COLLECTIVE, pairs=False)
