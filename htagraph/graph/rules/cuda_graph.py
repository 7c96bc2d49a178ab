"""GRAPH: start of a CUDA graph launch → start of each kernel or copy of the graph. Lag: graph launch latency or 0."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.launches import graph_launches

__all__ = ["cuda_graph"]


def cuda_graph(job: Job) -> Edges:
    """Return an edge from the start of each graph launch to the start of each kernel or copy with its correlation id.

    For the first kernel or copy on each stream, the lag is the smallest latency of the rank's graph launches with the
    same number of kernels and copies, because the latency grows with the size of the graph. Those after it have lag 0:
    the STREAM edges order them. Traces do not record the dependencies inside a CUDA graph.
    """
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    work = work[graph_launches(job)[acts.cause[work]]]
    order = work[np.lexsort((acts.start[work], acts.lane[work], acts.cause[work]))]
    call, lane = acts.cause[order], acts.lane[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (call[1:] != call[:-1]) | (lane[1:] != lane[:-1])
    lag = np.zeros(len(order), np.int64)
    lag[first] = _least_latency(job, order[first], call[first], np.bincount(call, minlength=1))
    return Edges.of(2 * call, 2 * order, lag, EdgeKind.GRAPH, Provenance.OBSERVED)


def _least_latency(job: Job, root: np.ndarray, call: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return for each `root` the smallest latency, ns, of the rank's graph launches of the same size.

    Args:
        job: the job.
        root: the first kernel or copy of a graph launch on a stream.
        call: the launch of each root.
        size: for every activity, how many kernels and copies it launched as a graph.
    """
    acts = job.activities
    _, member = np.unique(acts.rank[call].astype(np.int64) << 32 | size[call], return_inverse=True)
    least = np.full(len(root), np.iinfo(np.int64).max)
    np.minimum.at(least, member.ravel(), acts.start[root] - acts.start[call])
    return np.maximum(0, least[member.ravel()])
