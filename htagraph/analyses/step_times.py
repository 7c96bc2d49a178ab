"""How long each step took on each rank, device work included."""

from __future__ import annotations

import pandas as pd

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
    steps = graph.step_spans
    return TABLE.frame(steps.columns(*(graph.time[vertex] - graph.origin_ns for vertex in (steps.start, steps.end))))
