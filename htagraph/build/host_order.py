"""HOST_ORDER: a thread does one thing after another. Time between its activities is left to the gap."""

from __future__ import annotations

from htagraph.activities import Edges
from htagraph.build.activities import Job
from htagraph.kinds import EdgeKind, Provenance

__all__ = ["host_order"]


def host_order(job: Job) -> Edges:
    """Return an edge between neighbouring moments of a thread where no activity is at work between them.

    Nominal lag 0: what the thread did there, Python as a rule, is not recorded and becomes a gap.
    """
    source, target, owner = job.slices()
    free = owner < 0
    return Edges.of(source[free], target[free], 0, EdgeKind.HOST_ORDER, Provenance.ORDER)
