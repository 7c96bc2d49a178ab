"""Durations of activities and their statistics, which breakdowns by name share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import occurring
from htagraph.core.kinds import OPERATORS, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.busy_time import self_time

__all__ = ["STATISTICS", "statistics", "timed_work"]

STATISTICS = {
    "count": "int64", "total_us": "float64", "mean_us": "float64", "min_us": "float64", "max_us": "float64",
    "std_us": "float64",
}  # fmt: skip
"""The columns that `statistics` adds, and their types."""


def timed_work(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (the kernels and copies of all ranks, their durations in ns).

    A rank without device work (CPU training) has its operators and the collectives on its threads, by self time.
    """
    acts = graph.activities
    with_device = occurring(acts.rank[acts.on_device])
    host = of_kinds(acts.kind, OPERATORS) & ~np.isin(acts.rank, with_device)
    rows = np.flatnonzero(acts.on_device | host)
    duration = acts.duration[rows]
    on_host = host[rows]
    if on_host.any():
        duration = np.where(on_host, self_time(graph)[rows], duration)
    return rows, duration


def statistics(durations: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return one row per group, in the order of first appearance, with the statistics of its durations.

    Args:
        durations: one row per duration: the keys, and ``ns`` (int64).
        keys: columns that identify a group.

    Returns:
        The keys, ``count`` (int64), ``total_us``, ``mean_us``, ``min_us``, ``max_us``, ``std_us`` (float64; sample
        standard deviation, 0 for a single one).
    """
    table = durations.groupby(list(keys), sort=False)["ns"].agg(["count", "sum", "mean", "min", "max", "std"])
    table = table.set_axis(list(STATISTICS), axis=1).reset_index()
    of_time = [column for column in STATISTICS if column.endswith("_us")]
    table[of_time] = table[of_time].astype("float64").fillna(0.0) / 1000
    return table.astype(STATISTICS)
