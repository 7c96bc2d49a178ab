"""How long each step took on each rank, device work included."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.on_workers import of_moments

__all__ = ["step_times"]

TABLE = Table(
    "Step times",
    Col("rank step", "int64"),
    Col("start_us end_us", doc="since the job's first activity"),
    Col("duration_us"),
)


@described(TABLE)
@of_moments
def step_times(graph: DependencyGraph) -> pd.DataFrame:
    """Return when each step began and when it ended, device work launched in it included.

    A step begins with its ProfilerStep annotation and ends at its BOUNDARY: when the annotation and the last device
    work launched inside it have ended. Steps of a GPU job overlap where the host runs ahead.

    Args:
        graph: the job.

    Returns:
        One row per rank and step: {columns}.

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
    return TABLE.frame(
        {
            "rank": acts.rank[ends],
            "step": acts.step[ends],
            "start_us": (start - graph.origin_ns) / 1000,
            "end_us": (graph.time[2 * ends] - graph.origin_ns) / 1000,
            "duration_us": (graph.time[2 * ends] - start) / 1000,
        }
    )
