"""LAUNCH: device work cannot start before the call that enqueued it has started, and the call needs its time."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.launches import graph_launches

__all__ = ["launch"]


def launch(job: Job) -> Edges:
    """Return an edge from the start of each launch to the start of each piece of work with its correlation id.

    The lag is what was observed; `construction.latency` takes off what the work waited for once all other edges
    are known. The works of graph launches hang on GRAPH edges.
    """
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    call = acts.cause[work]
    single = (acts.kind[call] == ActivityKind.LAUNCH) & ~graph_launches(job)[call]
    work, call = work[single], call[single]
    lasts = job.moment(2 * work) - job.moment(2 * call)
    return Edges.of(2 * call, 2 * work, lasts, EdgeKind.LAUNCH, Provenance.OBSERVED)
