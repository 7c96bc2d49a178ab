"""How many works each stream has queued, as a step function of time."""

from __future__ import annotations

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import queue_changes

__all__ = ["queue_length"]


def queue_length(graph: DependencyGraph) -> pd.DataFrame:
    """Return how many works were enqueued but had not started, for each stream at each moment at which that changed.

    A work counts from the start of the call that enqueued it to its own start; a graph launch enqueues all works of the
    graph on a stream at once. Of changes at one moment those that enqueue come first, and a work that was recorded to
    start before its call was enqueued when it started: no length is negative. Works without a launch in the trace do
    not count.

    Args:
        graph: the job.

    Returns:
        One row per change, by rank, device, stream and time: ``rank``, ``device``, ``stream`` (int64), ``time_us``
        (float64: on the common clock, since the job's first activity), ``queue_length`` (int64: from this moment until
        the stream's next row), ``activity`` (int64: the launch that enqueued, or the work that started).

    Example:
        >>> import htagraph as hg
        >>> table = hg.queue_length(hg.load("data/demo"))
        >>> int(table["queue_length"].min()), int(table["queue_length"].iloc[-1])
        (0, 0)

    Source: HTA's queue length time series, for every launching call instead of twelve of them.
    """
    return queue_changes(graph)
