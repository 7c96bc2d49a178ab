"""P2P: start of a send and of its receive → their JOIN → end of both.

The lag into the JOIN is 0, the lag out of it is the transfer time. Pairs are matched by ids, order or time.
"""

from __future__ import annotations

from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.arrivals import meetings
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["p2p"]


def p2p(job: RecordedJob) -> Edges:
    """Return the edges of all matched sends and receives; each pair is a collective with two members."""
    return meetings(job, EdgeKind.P2P, pairs=True)
