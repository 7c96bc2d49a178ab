"""How many kernels and copies each stream has queued: over time, or in statistics by stream."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.kinds import FULL_QUEUE
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import QUEUE, distribution, lasting_us, queue_changes

__all__ = ["queue_length"]

TABLE = QUEUE
STREAMS = Table(
    "Queue length of each stream (kernels and copies)",
    Col("rank device stream", "int64"),
    Col("count", "int64", "changes of the length"),
    Col("mean std min p25 median p75 max", doc="over these changes, kernels and copies"),
    Col("mean_over_time", doc="mean of the lengths, each weighted by its time; 0 if no length took time"),
    Col("full_us", doc="how long the length was `full` or more"),
    Col("full_percent", doc="share of the time from the rank's first to its last moment"),
)

_KEYS = ["rank", "device", "stream"]


@described(TABLE, STREAMS)
def queue_length(
    graph: DependencyGraph, *, by: Literal["time", "stream"] = "time", full: float = FULL_QUEUE
) -> pd.DataFrame:
    """Return how many kernels and copies were enqueued on each stream but had not started.

    A kernel counts from the start of the call that enqueued it to its own start; a graph launch enqueues all kernels of
    the graph on a stream at once. At the same moment, enqueuing comes before starting, and a kernel recorded to
    start before its launch call counts as enqueued when it starts: no length is negative. Kernels without a launch in
    the trace do not count.

    Args:
        graph: the job.
        by: ``"time"``: one row per change of a queue's length. ``"stream"``: statistics, one row per stream.
        full: by stream, the length at which a queue counts as full; launches of CUDA block at about 1,024.

    Returns:
        By time: one row per change, ordered by rank, device, stream and time: {columns}.

        By stream: one row per stream with launched kernels: {columns}.

    Raises:
        ValueError: `by` is something else, or `full` is no number above 0.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> table = hg.queue_length(graph)
        >>> int(table["queue_length"].min()), int(table["queue_length"].iloc[-1])
        (0, 0)
        >>> bool((hg.queue_length(graph, by="stream", full=1)["full_us"] > 0).any())
        True

    Source: HTA's queue length time series, for every launching call instead of twelve of them; its queue length summary
    and time blocked on a full queue, of which it keeps one stream per rank.
    """
    check_choice("by", by, ("time", "stream"))
    if not isinstance(full, int | float | np.number) or not full > 0:
        msg = f"full={full!r}: give a number of kernels above 0"
        raise ValueError(msg)
    changes = queue_changes(graph)
    return changes if by == "time" else _by_stream(graph, changes, full)


def _by_stream(graph: DependencyGraph, changes: pd.DataFrame, full: float) -> pd.DataFrame:
    """Return statistics of each stream's queue."""
    lasts, length = lasting_us(changes, _KEYS), changes["queue_length"]
    parts = changes[_KEYS].assign(lasts=lasts, weighted=lasts * length, full_us=np.where(length >= full, lasts, 0.0))
    sums = parts.groupby(_KEYS)[["lasts", "weighted", "full_us"]].sum()
    table = distribution(length, [changes[key] for key in _KEYS])
    table["mean_over_time"] = (sums["weighted"] / sums["lasts"].where(sums["lasts"] > 0)).fillna(0.0)
    table["full_us"] = sums["full_us"]
    table = table.reset_index()
    rows = {rank: graph.activities.of_rank(rank) for rank in graph.ranks}
    moments = {rank: graph.time[2 * some.start : 2 * some.stop] for rank, some in rows.items()}
    spans_us = {rank: float(times.max() - times.min()) / 1000 for rank, times in moments.items() if len(times)}
    table["full_percent"] = 100 * table["full_us"] / table["rank"].map(spans_us)
    return STREAMS.frame(table)
