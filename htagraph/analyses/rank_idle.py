"""Why whole ranks stand still: the idle time of the temporal breakdown, by cause."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.idle_cause import CAUSES, KERNEL_PAUSE_US, binding_kind, pause_cause

__all__ = ["rank_idle"]


def rank_idle(graph: DependencyGraph, *, kernel_pause_us: float = KERNEL_PAUSE_US) -> pd.DataFrame:
    """Return how long no stream of a rank was at work between its first and last work, by cause.

    The cause of a pause is that of the first work behind it, as in `idle_breakdown`; here a stream that waits while
    another works is not idle. A rank's rows sum to ``idle_us`` of `temporal_breakdown`. Ranks without device work
    have no rows.

    Args:
        graph: the job.
        kernel_pause_us: what a pause between two queued kernels lasts at most, µs.

    Returns:
        One row per rank and cause: ``rank`` (int64), ``cause`` (str: ``host_wait``, ``kernel_wait``, ``other``),
        ``idle_us`` (float64), ``count`` (int64, pauses), ``share_percent`` (float64: of the rank's window).

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> idle = hg.rank_idle(graph).groupby("rank")["idle_us"].sum()
        >>> bool(abs(idle.to_numpy() - hg.temporal_breakdown(graph)["idle_us"].to_numpy()).max() < 1e-6)
        True
    """
    acts, binding = graph.activities, binding_kind(graph)
    rows: list[tuple[object, ...]] = []
    for rank in graph.ranks:
        mine = acts.of_rank(rank)
        work = mine.start + np.flatnonzero(acts.on_device[mine])
        if not len(work):
            continue
        work = work[np.argsort(acts.start[work], kind="stable")]
        reach = np.maximum.accumulate(acts.end[work])
        pause = np.maximum(0, acts.start[work[1:]] - reach[:-1])
        cause = pause_cause(graph, binding, work[1:], reach[:-1], kernel_pause_us)
        window = int(reach[-1] - acts.start[work[0]])
        for word in CAUSES:
            mine = pause[(cause == word) & (pause > 0)]
            total = int(mine.sum())
            rows.append((rank, word, total / 1000, len(mine), 100 * total / window if window else float("nan")))
    kinds = {"rank": "int64", "cause": "str", "idle_us": "float64", "count": "int64", "share_percent": "float64"}
    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
