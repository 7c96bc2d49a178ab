"""How full the queues of streams were, and for how long they were full."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import distribution, lasting_us, queue_changes

__all__ = ["queue_summary"]

_KEYS = ["rank", "device", "stream"]
_FULL = 1024
"""Works that the queue of a CUDA stream holds."""


def queue_summary(graph: DependencyGraph, *, full: int = _FULL) -> pd.DataFrame:
    """Return statistics of each stream's queue length, and how long it was full, when launches block.

    Args:
        graph: the job.
        full: the length at which a queue counts as full.

    Returns:
        One row per stream with launched work: ``rank``, ``device``, ``stream`` (int64); over the changes of its
        length: ``count`` (int64), ``mean``, ``std``, ``min``, ``p25``, ``median``, ``p75``, ``max`` (float64);
        ``mean_over_time`` (float64: each length weighted by how long it lasted; 0 if all took no time), ``full_us``
        (float64: how long the length was `full` or more) and ``full_percent`` (float64: of the rank's time from its
        first to its last moment).

    Raises:
        ValueError: `full` is no number above 0.

    Example:
        >>> import htagraph as hg
        >>> table = hg.queue_summary(hg.load("data/demo"), full=1)
        >>> bool((table["full_us"] > 0).any())
        True

    Source: HTA's queue length summary and time blocked on a full queue, of which it keeps one stream per rank.
    """
    if not isinstance(full, int | float | np.number) or not full > 0:
        msg = f"full={full!r}: give a number of works above 0"
        raise ValueError(msg)
    changes = queue_changes(graph)
    lasts = lasting_us(changes, _KEYS)
    length = changes["queue_length"]
    parts = changes[_KEYS].assign(lasts=lasts, weighted=lasts * length, full_us=np.where(length >= full, lasts, 0.0))
    sums = parts.groupby(_KEYS)[["lasts", "weighted", "full_us"]].sum()
    table = distribution(length, [changes[key] for key in _KEYS])
    table["mean_over_time"] = (sums["weighted"] / sums["lasts"].where(sums["lasts"] > 0)).fillna(0.0)
    table["full_us"] = sums["full_us"]
    table = table.reset_index()
    spans = _spans(graph)
    table["full_percent"] = 100 * table["full_us"] / table["rank"].map(spans)
    kinds = dict.fromkeys((*_KEYS, "count"), "int64")
    return table.astype(dict.fromkeys(table.columns, "float64") | kinds)


def _spans(graph: DependencyGraph) -> dict[int, float]:
    time, acts = graph.time, graph.activities
    moments = {rank: time[2 * acts.of_rank(rank).start : 2 * acts.of_rank(rank).stop] for rank in graph.ranks}
    return {rank: float(each.max() - each.min()) / 1000 for rank, each in moments.items() if len(each)}
