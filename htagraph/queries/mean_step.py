"""The mean step of a job over all ranks: the step time of summaries and of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind
from htagraph.queries.replay import last_end

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["mean_step_ns", "step_moments"]


def mean_step_ns(graph: DependencyGraph, time: Array) -> float:
    """Return the time from the first step's start on any rank to the last one's end over the number of steps, ns.

    Without steps, it is the time from the first moment to the last of any thread that does something.

    Args:
        graph: the job.
        time: the moment of each vertex, ns, as recorded or as predicted.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> round(mean_step_ns(graph, graph.time) / 1e6, 2)
        8.72
    """
    start, end = step_moments(graph)
    if not len(start):
        last = last_end(graph, time)  # no moment is later
        return 0.0 if last is None else float(last - graph.origin_ns)
    return float(time[end].max() - time[start].min()) / len(np.unique(graph.activities.step[end >> 1]))


@once
def step_moments(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return the vertices of each step's start and end, by (rank, step)."""
    acts = graph.activities
    ends, marks = (np.flatnonzero(acts.kind == kind) for kind in (ActivityKind.BOUNDARY, ActivityKind.STEP))
    ends = ends[np.lexsort((acts.step[ends], acts.rank[ends]))]
    of_end, of_mark = (acts.rank[rows].astype(np.int64) << 32 | acts.step[rows] for rows in (ends, marks))
    order = np.argsort(of_mark, kind="stable")
    return 2 * marks[order][np.searchsorted(of_mark[order], of_end)], 2 * ends
