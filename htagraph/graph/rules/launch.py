"""LAUNCH: start of a launch call → start of the kernel or copy that it enqueued. Lag: launch latency; known by id.

Where a profiler recorded no calls, the operator that enqueued the work stands for its launch.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import launched_by_operators
from htagraph.graph.evidence.cuda_graphs import graph_launches
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["launch"]


def launch(job: RecordedJob) -> Edges:
    """Return an edge from the start of each launch to the start of each kernel or copy with its correlation id.

    The lag is the recorded time between the two starts. Once all other edges are known, `construction.fit` reduces
    it to the launch latency, without the time that the kernel or copy waited for something else. Kernels and copies of
    a CUDA graph launch have a GRAPH edge instead (`rules.cuda_graph`). An operator has the edge only on ranks without
    any call.
    """
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    call = acts.cause[work]
    single = (acts.kind[call] == ActivityKind.LAUNCH) & ~graph_launches(job)[call]
    single |= launched_by_operators(job, work)
    work, call = work[single], call[single]
    lasts = job.moment(2 * work) - job.moment(2 * call)
    return Edges.of(2 * call, 2 * work, lasts, EdgeKind.LAUNCH, Provenance.OBSERVED)
