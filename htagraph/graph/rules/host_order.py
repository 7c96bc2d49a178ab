"""HOST_ORDER: one moment of a thread → its next one, where no operator or call runs between them. Lag 0.

A moment is the start or the end of an activity. Known by the recorded times of the thread.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.parents import nearest
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["host_order"]


def host_order(job: RecordedJob) -> Edges:
    """Return an edge for each stretch of a thread's time in which no operator or call runs.

    The lag is 0: what the thread did meanwhile, usually Python, is not recorded, so its time becomes the gap at the
    target. The edge's activity is the innermost annotation around the stretch, which the gap counts for; a send that
    goes on meanwhile is none.
    """
    parent, kind = job.activities.parent, job.activities.kind
    source, target, owner = job.slices
    free = owner < 0
    source, target = source[free], target[free]
    activity = source >> 1
    region = np.where(source & 1, parent[activity], activity)
    region = nearest(parent, kind != ActivityKind.HOST_COMMUNICATION, region)
    return Edges.of(source, target, 0, EdgeKind.HOST_ORDER, Provenance.ORDER, activity=region)
