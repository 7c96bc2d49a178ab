"""Durations of activities and their statistics, which breakdowns by name share."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

__all__ = ["STATISTICS", "statistics"]

STATISTICS = {
    "count": "int64", "total_us": "float64", "mean_us": "float64", "min_us": "float64", "max_us": "float64",
    "std_us": "float64",
}  # fmt: skip
"""The columns that `statistics` adds, and their types."""


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
