"""The bandwidth of memory copies and memsets: over time, or in statistics by kind of copy."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import BANDWIDTH, bandwidth_changes, distribution, lasting_us

__all__ = ["memory_bandwidth"]

TABLE = BANDWIDTH
COPIES = Table(
    "Memory copy bandwidth",
    Col("rank", "int64"),
    Col("copy", "str"),
    Col("count", "int64", "changes of the bandwidth, those to 0 left out"),
    Col("mean_gb_s std_gb_s min_gb_s p25_gb_s median_gb_s p75_gb_s max_gb_s", doc="over these changes"),
    Col("busy_us", doc="time in which any copy of the kind ran"),
    Col("copied_gb", doc="bandwidth times time, 10⁹ bytes"),
    Col("mean_over_time_gb_s", doc="``copied_gb`` over ``busy_us``"),
)

_KEYS = ["rank", "copy"]


@described(TABLE, COPIES)
def memory_bandwidth(graph: DependencyGraph, *, by: Literal["time", "copy"] = "time") -> pd.DataFrame:
    """Return the summed bandwidth of all copies (and memsets) of one kind that run on a rank at the same moment.

    Each copy has its recorded bandwidth, else its bytes over its duration (0 where neither is known), from its start to
    its end; a copy that was recorded without duration lasts 1 µs. At the same moment, ends come before starts.

    Args:
        graph: the job.
        by: ``"time"``: one row per change of the bandwidth. ``"copy"``: statistics, one row per rank and kind of copy.

    Returns:
        By time: one row per change, ordered by rank, kind of copy and time: {columns}.

        By copy: one row per rank and kind of copy, in that order: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool((hg.memory_bandwidth(graph)["bandwidth_gb_s"] >= 0).all())
        True
        >>> table = hg.memory_bandwidth(graph, by="copy")
        >>> bool((table["max_gb_s"] >= table["mean_gb_s"]).all())
        True

    Source: HTA's memory bandwidth time series and summary.
    """
    check_choice("by", by, ("time", "copy"))
    changes = bandwidth_changes(graph)
    return changes if by == "time" else _by_copy(changes)


def _by_copy(changes: pd.DataFrame) -> pd.DataFrame:
    """Return statistics of each kind of copy on each rank."""
    lasts = lasting_us(changes, _KEYS)
    level = changes["bandwidth_gb_s"]
    under_way = changes.assign(busy_us=lasts, copied_gb=level * lasts / 1e6)[level > 0]
    table = distribution(under_way["bandwidth_gb_s"], [under_way[key] for key in _KEYS])
    table = table.rename(columns={name: f"{name}_gb_s" for name in table.columns if name != "count"})
    table[["busy_us", "copied_gb"]] = under_way.groupby(_KEYS)[["busy_us", "copied_gb"]].sum()
    table = table.reset_index()
    busy_us = table["busy_us"].where(table["busy_us"] > 0)
    return COPIES.frame(table.assign(mean_over_time_gb_s=1e6 * table["copied_gb"] / busy_us))
