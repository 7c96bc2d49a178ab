"""When the recording of each rank begins and ends."""

from __future__ import annotations

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.recordings import recordings_of

__all__ = ["recorded_spans"]


def recorded_spans(graph: DependencyGraph) -> pd.DataFrame:
    """Return when the recording of each rank begins and ends, on the common clock.

    Args:
        graph: the job.

    Returns:
        A row per rank: ``rank`` (int64), ``begin_us``, ``end_us`` (float64: its first start and last end, µs since the
        job's first activity), ``begins_later_us`` (float64: than the recording that begins first), ``ends_earlier_us``
        (float64: than the one that ends last), ``first_step`` and ``last_step`` (int64: ProfilerStep numbers, -1 for
        none).

    Example:
        >>> import htagraph as hg
        >>> spans = recorded_spans(hg.load("data/demo"))
        >>> float(spans["begins_later_us"].min())
        0.0
    """
    spans = recordings_of(graph.activities, graph.time)
    first, last = (int(spans.begin.min()), int(spans.end.max())) if len(spans.rank) else (0, 0)
    return pd.DataFrame(
        {
            "rank": spans.rank,
            "begin_us": (spans.begin - graph.origin_ns) / 1000,
            "end_us": (spans.end - graph.origin_ns) / 1000,
            "begins_later_us": (spans.begin - first) / 1000,
            "ends_earlier_us": (last - spans.end) / 1000,
            "first_step": spans.first_step,
            "last_step": spans.last_step,
        }
    )
