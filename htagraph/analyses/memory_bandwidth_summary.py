"""Statistics of the bandwidth of copies and sets of memory."""

from __future__ import annotations

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import bandwidth_changes, distribution, lasting_us

__all__ = ["memory_bandwidth_summary"]

_KEYS = ["rank", "copy"]


def memory_bandwidth_summary(graph: DependencyGraph) -> pd.DataFrame:
    """Return statistics of the bandwidth that copies and sets of each kind had while any was under way.

    Args:
        graph: the job.

    Returns:
        One row per rank and kind of copy, in that order: ``rank`` (int64), ``copy`` (str), over the changes of its
        bandwidth but those to 0, in GB/s: ``count`` (int64), ``mean``, ``std``, ``min``, ``p25``, ``median``, ``p75``,
        ``max`` (float64); ``busy_us`` (float64: how long any was under way), ``gb`` (float64: bandwidth times time, GB)
        and ``mean_over_time_gb_s`` (float64: that over the time).

    Example:
        >>> import htagraph as hg
        >>> table = hg.memory_bandwidth_summary(hg.load("data/demo"))
        >>> bool((table["max"] >= table["mean"]).all())
        True

    Source: HTA's memory bandwidth summary.
    """
    changes = bandwidth_changes(graph)
    lasts = lasting_us(changes, _KEYS)
    level = changes["bandwidth_gb_s"]
    some = changes.assign(lasts=lasts, gb=level * lasts / 1e6)[level > 0]
    sums = some.groupby(_KEYS)[["lasts", "gb"]].sum()
    table = distribution(some["bandwidth_gb_s"], [some[key] for key in _KEYS])
    table["busy_us"], table["gb"] = sums["lasts"], sums["gb"]
    table = table.reset_index()
    kinds = dict.fromkeys(table.columns, "float64") | {"rank": "int64", "copy": "str", "count": "int64"}
    table = table.astype(kinds)
    return table.assign(mean_over_time_gb_s=1e6 * table["gb"] / table["busy_us"].where(table["busy_us"] > 0))
