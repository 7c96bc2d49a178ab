"""Start-up on a critical path, by rank and in predictions: all of it from `graph.start_up`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from htagraph.core.arrays import Ints, marked
from htagraph.core.kinds import GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.start_up import KINDS
from htagraph.queries.paths import CriticalPath
from htagraph.queries.weights import OwnTime, State, initial, with_factor

__all__ = ["first_calls", "start_up_by_rank", "trials_of", "without_start_up"]


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
    """Return the job in which some activities of start-up take their usual time, as after a warm-up.

    Kernels that were only tried out take no time.
    """
    start_up = graph.start_up
    factor = np.ones(len(graph.activities) + 1)
    chosen = np.isin(start_up.activity, [*activities])
    usual = (start_up.whole - start_up.time)[chosen]
    trials = trials_of(graph)
    calls = graph.activities.cause[trials]
    trials = trials[np.isin(calls, start_up.activity[chosen])]
    is_trial = marked(trials, len(graph.activities))
    factor[start_up.activity[chosen]] = usual / np.maximum(
        start_up.whole[chosen],
        1,
    )
    of_edge = factor[graph.edges.activity]
    of_edge[is_trial[graph.edges.source >> 1]] = 0.0
    of_edge[is_trial[graph.edges.target >> 1]] = 0.0
    edges = np.flatnonzero(of_edge < 1)
    gaps = np.concatenate([2 * trials, 2 * trials + 1])
    time = OwnTime(
        edges=edges,
        fixed=np.zeros_like(edges),
        gaps=gaps,
    )
    factors = np.concatenate([of_edge[edges], np.zeros(len(gaps))])
    return with_factor(
        initial(graph),
        time,
        factors,
    )


def trials_of(graph: DependencyGraph) -> Ints:
    """Return the device work that only tries kernels out: launched in start-up of the kind ``tuning``.

    Example:
        >>> import htagraph as hg
        >>> trials_of(hg.load("data/demo"))
        array([], dtype=int64)
    """
    acts = graph.activities
    start_up = graph.start_up
    tuning = start_up.activity[start_up.kind == KINDS.index("tuning")]
    is_tuning_call = marked(tuning, len(acts) + 1)  # of no call is the last
    return np.flatnonzero(acts.on_device & is_tuning_call[acts.cause])


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
