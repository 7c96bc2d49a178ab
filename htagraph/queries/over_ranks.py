"""Breakdowns with a row per rank, summed over the ranks of the job or over the instances of a module class."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["by_class", "over_ranks"]

_KEYS = ("on", "kind", "name", "input_dims")
"""Columns that name a row of a breakdown, beside its rank."""
_SUMMED = ("count", "total_us", "host_us", "host_self_us", "device_count", "device_us", "device_total_us")


def over_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return a breakdown with one row per rank and name as one with one row per name, the largest time first.

    Args:
        table: a breakdown by rank: `rank`, columns that name a row, and counts and times.

    Returns:
        The columns that name a row, ``ranks`` (int64: how many ranks have it), the counts and times summed over ranks;
        for durations (``total_us``) also ``mean_us``, ``min_us``, ``max_us`` over all ranks; and ``share_percent``
        (float64: of ``device_us``, or of ``total_us``, over all rows).

    Example:
        >>> table = pd.DataFrame({"rank": [0, 1], "name": ["a", "a"], "count": [1, 3], "total_us": [2.0, 6.0]})
        >>> over_ranks(table).to_dict("records")
        [{'name': 'a', 'ranks': 2, 'count': 4, 'total_us': 8.0, 'mean_us': 2.0, 'share_percent': 100.0}]
    """
    keys = [column for column in _KEYS if column in table]
    sums: dict[str, Any] = {column: (column, "sum") for column in table.columns if column in _SUMMED}
    ends = {column: (column, column[:3]) for column in ("min_us", "max_us") if column in table}
    merged = table.groupby(keys, as_index=False, sort=False).agg(ranks=("rank", "nunique"), **sums, **ends)
    order = ["device_us", "host_self_us"] if "device_us" in table else ["total_us"]
    if order == ["total_us"]:
        merged.insert(len(keys) + 3, "mean_us", merged["total_us"] / merged["count"])
    merged["share_percent"] = 100 * merged[order[0]] / (merged[order[0]].sum() or float("nan"))
    return merged.sort_values(order, ascending=False, kind="stable", ignore_index=True)


def by_class(table: pd.DataFrame) -> pd.DataFrame:
    """Return a breakdown by module as one by class, over all ranks: Linear_0 and Linear_1 are one row, Linear.

    Args:
        table: the result of `htagraph.module_breakdown` by rank.

    Returns:
        ``kind``, ``name`` (str: of modules the class), ``count``, ``host_self_us``, ``device_count``, ``device_us``
        summed, ``share_percent`` (float64: of the device time of all rows); the most device time first.
    """
    bare = table["name"].str.replace(r"_\d+$", "", regex=True)
    sums = ["count", "host_self_us", "device_count", "device_us"]
    named = table.assign(name=bare.where(table["kind"] == "module", table["name"]))
    classes = named.groupby(["kind", "name"], as_index=False, sort=False)[sums].sum()
    classes["share_percent"] = 100 * classes["device_us"] / (classes["device_us"].sum() or float("nan"))
    return classes.sort_values(["device_us", "host_self_us"], ascending=False, kind="stable", ignore_index=True)
