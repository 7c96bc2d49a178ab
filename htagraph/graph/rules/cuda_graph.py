"""GRAPH: start of a CUDA graph launch → start of each kernel or copy of the graph. Lag: graph launch latency or 0."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import run_starts
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.cuda_graphs import graph_work
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["cuda_graph"]


def cuda_graph(job: RecordedJob) -> Edges:
    """Return an edge from the start of each graph launch to the start of each kernel or copy with its correlation id.

    For the first kernel or copy on each stream, the lag is the recorded time between the two starts; once all other
    edges are known, `construction.fit` reduces it to the launch latency. Those after it have lag 0: the STREAM
    edges order them, and EVENT_WAIT edges where branches meet (`evidence.cuda_graphs`).
    """
    acts, order = job.activities, graph_work(job)
    call, lane = acts.cause[order], acts.lane[order]
    first = run_starts(call, lane)
    lag = np.zeros(len(order), np.int64)
    lag[first] = job.moment(2 * order[first]) - job.moment(2 * call[first])
    return Edges.of(2 * call, 2 * order, lag, EdgeKind.GRAPH, Provenance.OBSERVED)
