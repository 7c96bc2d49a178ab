"""Start-up on a critical path, in windows of time and in predictions: all of it from `graph.start_up`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from htagraph.core.intervals import Intervals, union
from htagraph.core.kinds import GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.paths import CriticalPath
from htagraph.queries.weights import OwnTime, State, initial, with_factor

__all__ = ["first_calls", "start_up_by_rank", "start_up_spans", "without_start_up"]


def first_calls(path: CriticalPath) -> dict[int, int]:
    """Return the activities of start-up on a critical path, and how much of the path each takes beyond its usual time.

    Times are in ns; the activities are rows of `graph.start_up`.

    Example:
        >>> import htagraph as hg
        >>> first_calls(hg.critical_path(hg.load("data/demo")))
        {}
    """
    graph = path.graph
    segments = path.segments
    start_up = graph.start_up
    if not len(start_up):
        return {}
    is_own = segments.gap == GapKind.NONE
    on_path = np.bincount(
        segments.activity[is_own],
        segments.length[is_own],
        len(graph.activities),
    )
    rows = start_up.activity
    excess = np.minimum(
        on_path[rows] * start_up.time / np.maximum(start_up.whole, 1),
        start_up.time,
    )
    return {
        activity: round(ns)
        for activity, ns in zip(
            rows.tolist(),
            excess.tolist(),
            strict=True,
        )
        if round(ns) > 0
    }


def without_start_up(graph: DependencyGraph, activities: Collection[int]) -> State:
    """Return the job in which some activities of start-up take their usual time, as after a warm-up."""
    start_up = graph.start_up
    factor = np.ones(len(graph.activities) + 1)
    chosen = np.isin(start_up.activity, [*activities])
    usual = (start_up.whole - start_up.time)[chosen]
    factor[start_up.activity[chosen]] = usual / np.maximum(
        start_up.whole[chosen],
        1,
    )
    edges = np.flatnonzero(factor[graph.edges.activity] < 1)
    time = OwnTime(
        edges=edges,
        fixed=np.zeros_like(edges),
        gaps=edges[:0],
    )
    return with_factor(
        initial(graph),
        time,
        factor[graph.edges.activity[edges]],
    )


def start_up_by_rank(graph: DependencyGraph) -> dict[int, int]:
    """Return how long the start-up of each rank takes that has some, ns, the longest first.

    Example:
        >>> import htagraph as hg
        >>> start_up_by_rank(hg.load("data/demo"))
        {}
    """
    start_up = graph.start_up
    ranks, row = np.unique(
        graph.activities.rank[start_up.activity],
        return_inverse=True,
    )
    total = np.bincount(
        row,
        start_up.time,
        len(ranks),
    ).astype(np.int64)
    longest_first = np.argsort(-total, kind="stable")
    return dict(
        zip(
            ranks[longest_first].tolist(),
            total[longest_first].tolist(),
            strict=True,
        )
    )


def start_up_spans(graph: DependencyGraph, rank: int) -> Intervals:
    """Return when a rank is in start-up, as a normal interval set on the common clock, ns."""
    activities = graph.start_up.activity
    of_rank = activities[graph.activities.rank[activities] == rank]
    return union(
        graph.time[2 * of_rank],
        graph.time[2 * of_rank + 1],
    )
