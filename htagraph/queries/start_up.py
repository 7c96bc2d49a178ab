"""Start-up on a critical path, by rank and in predictions: all of it from `graph.start_up`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from htagraph.core.arrays import Ints, marked
from htagraph.core.kinds import GapKind, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.start_up import KINDS
from htagraph.queries.path_segments import Segments
from htagraph.queries.paths import CriticalPath
from htagraph.queries.weights import OwnTime, State, initial, with_factor

_LATE = (GapKind.LAUNCH_EXCESS, GapKind.FIRST_RUN)
"""Gaps before device work that may come from its launch."""

__all__ = ["first_calls", "owners_in_start_up", "start_up_by_rank", "trials_of", "without_start_up"]


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
    owner = owners_in_start_up(
        graph,
        segments,
    )
    is_own = owner >= 0
    on_path = np.bincount(
        owner[is_own],
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


def owners_in_start_up(graph: DependencyGraph, segments: Segments) -> Ints:
    """Return the activity of start-up that each segment of a path is the time of; -1 for none.

    The wait of a kernel's first run is the time of the launch that loads the kernel's code.
    """
    acts = graph.activities
    is_start_up = marked(graph.start_up.activity, len(acts) + 1)  # of no activity is the last
    launch = acts.cause[segments.target].astype(np.int64)
    is_own = segments.gap == GapKind.NONE
    is_own &= is_start_up[segments.activity]
    is_first_run = segments.gap == GapKind.FIRST_RUN
    is_first_run &= is_start_up[launch]
    owner = np.where(
        is_own,
        segments.activity,
        -1,
    )
    return np.where(
        is_first_run,
        launch,
        owner,
    )


def without_start_up(graph: DependencyGraph, activities: Collection[int]) -> State:
    """Return the job in which some activities of start-up take their usual time, as after a warm-up.

    Kernels that were only tried out take no time, and kernels whose code loads start as soon as other kernels do.
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
    late = _late_first_runs(
        graph,
        start_up.activity[chosen],
    )
    gaps = np.unique(np.concatenate([2 * trials, 2 * trials + 1, 2 * late]))
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


def _late_first_runs(graph: DependencyGraph, start_up: Ints) -> Ints:
    """Return the kernels that start late as their code loads: launched in start-up, or first runs on its ranks."""
    acts = graph.activities
    is_start_up = marked(start_up, len(acts) + 1)  # of no call is the last
    kind_at_start = graph.gap_kind[0::2]
    is_launched_then = of_kinds(
        kind_at_start,
        _LATE,
    )
    is_launched_then &= is_start_up[acts.cause]
    is_on_rank = np.isin(
        acts.rank,
        acts.rank[start_up],
    )
    is_on_rank &= kind_at_start == GapKind.FIRST_RUN
    is_late = is_launched_then | is_on_rank
    return np.flatnonzero(acts.on_device & is_late)


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
