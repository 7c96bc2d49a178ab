"""DATALOADER: the time a thread waits for its data loader comes from outside the trace."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.core.naming import is_data_loader
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["dataloader"]


def dataloader(job: Job) -> Edges:
    """Return an edge along each stretch of a data loader's own time, whether it is written as annotation or operator.

    Its lag is what was waited: worker processes are in no trace, so nothing else explains it. Operators inside, as of
    a loader without workers, have edges of their own.
    """
    acts = job.activities
    names = [number for number, name in enumerate(job.names) if is_data_loader(name)]
    source, target, owner = job.slices()
    if not names:
        source, target, owner = source[:0], target[:0], owner[:0]
    region = np.where(owner >= 0, owner, np.where(source % 2, acts.parent[source // 2], source // 2))
    in_loader = (region >= 0) & np.isin(acts.name[region], names)
    source, target, region = source[in_loader], target[in_loader], region[in_loader]
    lasts = job.moment(target) - job.moment(source)
    return Edges.of(source, target, lasts, EdgeKind.DATALOADER, Provenance.OBSERVED, activity=region)
