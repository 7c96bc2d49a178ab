"""DATALOADER: from one moment to the next on a thread while it is inside a data loader. Lag: the time between them.

Known by the name of the loader's annotation or operator. The worker processes are not in the trace.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.core.naming import is_data_loader
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["dataloader"]


def dataloader(job: Job) -> Edges:
    """Return an edge for each stretch of a data loader's self time, whether it is an annotation or an operator.

    The lag is the whole stretch: it is spent waiting for worker processes, which no trace records, so no other edge can
    explain it. Operators inside, which a loader without workers runs, have BODY edges of their own.
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
