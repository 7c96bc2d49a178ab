"""GRAPH: the first works of a CUDA graph cannot start before the call that launched it."""

from __future__ import annotations

import numpy as np

from htagraph.activities import Edges
from htagraph.build.activities import Job
from htagraph.build.launches import graph_launches
from htagraph.kinds import EdgeKind, Provenance

__all__ = ["graph"]


def graph(job: Job) -> Edges:
    """Return an edge from the start of each graph launch to the start of the first work it put on each stream.

    The works behind it follow by STREAM: the graph's own dependencies are not in a trace. The nominal lag is the least
    latency of that rank's launches of as many works: how long a launch takes grows with its graph.
    """
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    work = work[graph_launches(job)[acts.cause[work]]]
    order = work[np.lexsort((acts.start[work], acts.lane[work], acts.cause[work]))]
    call, lane = acts.cause[order], acts.lane[order]
    first = np.concatenate(([True], (call[1:] != call[:-1]) | (lane[1:] != lane[:-1]))) if len(order) else order > 0
    root, call = order[first], call[first]
    latency = acts.start[root] - acts.start[call]
    works = np.bincount(acts.cause[work], minlength=len(acts))[call] if len(work) else call
    _, member = np.unique(acts.rank[call].astype(np.int64) << 32 | works, return_inverse=True)
    least = np.full(len(root), np.iinfo(np.int64).max)
    np.minimum.at(least, member.ravel(), latency)
    lag = np.maximum(0, least[member.ravel()])
    return Edges.of(2 * call, 2 * root, lag, EdgeKind.GRAPH, Provenance.OBSERVED)
