"""GRAPH: the works of a CUDA graph cannot start before the call that launched it."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.launches import graph_launches

__all__ = ["cuda_graph"]


def cuda_graph(job: Job) -> Edges:
    """Return an edge from the start of each graph launch to the start of each of its works.

    For the first work on each stream the nominal lag is the least latency of that rank's launches of as many works: how
    long a launch takes grows with its graph. The works behind it follow by STREAM, so theirs is 0: the graph's own
    dependencies are not in a trace.
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


def _least_latency(job: Job, root: np.ndarray, call: np.ndarray, works: np.ndarray) -> np.ndarray:
    acts = job.activities
    _, member = np.unique(acts.rank[call].astype(np.int64) << 32 | works[call], return_inverse=True)
    least = np.full(len(root), np.iinfo(np.int64).max)
    np.minimum.at(least, member.ravel(), acts.start[root] - acts.start[call])
    return np.maximum(0, least[member.ravel()])
