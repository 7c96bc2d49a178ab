"""DATALOADER: along the time of a data loader's call. Lag: that time.

Known by the name of the loader's annotation or operator. Where worker processes make the batches, a call that waited
has the time that fetching a ready batch takes, and the workers' time per batch is an edge of kind OUTSIDE.
"""

from __future__ import annotations

from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["dataloader"]


def dataloader(job: RecordedJob) -> Edges:
    """Return an edge for each stretch of a data loader's own time, by the loader's name.

    The loader is an annotation or an operator. Operators inside, which a loader without workers runs, have BODY edges
    of their own.
    """
    return job.loads.stretches
