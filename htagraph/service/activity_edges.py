"""The edges between one activity and others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["activity_edges"]


def activity_edges(graph: DependencyGraph, activity: int, *, incoming: bool) -> npt.NDArray[np.int64]:
    """Return the numbers of the edges between an activity and others: those at its start, then those at its end.

    Args:
        graph: the job.
        activity: its number.
        incoming: whether of what it waits for, else of what waits for it.

    Example:
        >>> import htagraph as hg
        >>> len(activity_edges(hg.load("data/demo"), 1205, incoming=True))
        3
    """
    offsets = graph.in_offsets if incoming else graph.out_offsets
    others = graph.edges.source if incoming else graph.edges.target
    places = np.arange(offsets[2 * activity], offsets[2 * activity + 2])
    edges = graph.in_edges[places].astype(np.int64) if incoming else places
    return edges[others[edges] >> 1 != activity]
