"""How long each step took on each rank, device work included."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.on_workers import of_moments

__all__ = ["step_times"]


@of_moments
def step_times(graph: DependencyGraph) -> pd.DataFrame:
    """Return when each step began and when it ended, device work launched in it included.

    A step begins with its ProfilerStep annotation and ends at its BOUNDARY: when the annotation and the last device
    work launched inside it have ended. Steps of a GPU job overlap where the host runs ahead.

    Args:
        graph: the job.

    Returns:
        One row per rank and step: ``rank``, ``step`` (int64), ``start_us``, ``end_us`` (float64, since the job's first
        activity), ``duration_us`` (float64).

    Example:
        >>> import htagraph as hg
        >>> bool((hg.step_times(hg.load("data/demo"))["duration_us"] > 0).all())
        True
    """
    acts = graph.activities
    ends = np.flatnonzero(acts.kind == ActivityKind.BOUNDARY)
    ends = ends[np.lexsort((acts.step[ends], acts.rank[ends]))]
    marks = np.flatnonzero(acts.kind == ActivityKind.STEP)
    began: dict[tuple[int, int], int] = {}
    for mark in marks[::-1]:
        began[int(acts.rank[mark]), int(acts.step[mark])] = int(graph.time[2 * mark])
    start = np.array([began[int(acts.rank[end]), int(acts.step[end])] for end in ends], np.int64)
    return pd.DataFrame(
        {
            "rank": acts.rank[ends].astype(np.int64),
            "step": acts.step[ends].astype(np.int64),
            "start_us": (start - graph.origin_ns) / 1000,
            "end_us": (graph.time[2 * ends] - graph.origin_ns) / 1000,
            "duration_us": (graph.time[2 * ends] - start) / 1000,
        }
    )
