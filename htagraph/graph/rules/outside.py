"""OUTSIDE: a thread waits for something outside of the recording. Lag: the time that it takes per item.

The thread waits for another process, a file, a socket or a sleep: nothing that was recorded ends when the wait ends. So
each edge leads from the end of the last wait before to the end of this one, and the cause stays outside of the trace.
"""

from __future__ import annotations

from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["outside"]


def outside(job: RecordedJob) -> Edges:
    """Return the edges of waits for something that was not recorded, from their pace.

    The worker processes of a data loader are known by the name of the loader that waits for them (`evidence.loads`).
    Everything else is inferred from the pace alone (`evidence.outside`): no name proves the wait. The stretch in which
    the thread waits is then time of the thread like any other.
    """
    return Edges.concatenate([job.loads.paces, job.outside.paces])
