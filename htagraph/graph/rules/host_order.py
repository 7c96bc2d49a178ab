"""HOST_ORDER: a thread does one thing after another. Time between its activities is left to the gap."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["host_order"]


def host_order(job: Job) -> Edges:
    """Return an edge between neighbouring moments of a thread where no activity is at work between them.

    Nominal lag 0: what the thread did there, Python as a rule, is not recorded and becomes a gap. The edge belongs to
    the innermost annotation around the stretch: the gap is the Python of that region.
    """
    parent = job.activities.parent
    source, target, owner = job.slices()
    free = owner < 0
    source, target = source[free], target[free]
    region = np.where(source % 2, parent[source // 2], source // 2)
    return Edges.of(source, target, 0, EdgeKind.HOST_ORDER, Provenance.ORDER, activity=region)
