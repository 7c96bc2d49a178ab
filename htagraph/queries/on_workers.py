"""Analyses of jobs whose ranks lie with workers: each rank answered alone, sums over ranks, and the job's moments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

import pandas as pd

from htagraph.core.errors import Issue
from htagraph.core.tables import Col
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "TOTAL_BOUND",
    "UPPER_BOUND",
    "JobOnWorkers",
    "by_class",
    "known_us",
    "of_moments",
    "or_summed",
    "over_ranks",
    "rank_by_rank",
]

P = ParamSpec("P")

_KEYS = ("on", "kind", "name", "input_dims")
"""Columns that name a row of a breakdown, beside its rank."""
UPPER_BOUND = Col("at_most_us", doc="the part of the time that is an upper bound: durations that were cut", maybe=True)
"""The column of a breakdown that has durations which were cut at the next start; ``total_us`` includes this part."""
TOTAL_BOUND = Col("total_at_most_us", doc="the part of ``device_total_us`` that is an upper bound", maybe=True)
"""The column of a breakdown by owner, beside `UPPER_BOUND`: that column is about the owner's own work."""
_SUMMED = (
    "count",
    "total_us",
    "host_us",
    "host_self_us",
    "device_count",
    "device_us",
    "device_total_us",
    "at_most_us",
    "total_at_most_us",
)


class JobOnWorkers(Protocol):
    """A job whose ranks lie with workers, as `htagraph.load` returns it if an engine is given."""

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What was wrong with the files, and which ranks are missing."""

    def rank_by_rank(self, analysis: Callable[..., pd.DataFrame], *given: Any, **options: Any) -> pd.DataFrame:  # noqa: ANN401
        """Return the rows of all ranks, each of which a worker analyses alone."""

    def of_moments(self, analysis: str) -> pd.DataFrame:
        """Return what the moments that ranks share answer."""


def rank_by_rank(
    analysis: Callable[Concatenate[DependencyGraph, P], pd.DataFrame],
) -> Callable[Concatenate[DependencyGraph | JobOnWorkers, P], pd.DataFrame]:
    """Return an analysis that workers answer too, each for the ranks that it reads.

    The rows of a rank must depend on that rank alone, and hold neither numbers of activities nor times on the common
    clock; they must come in the order of ranks.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> len(rank_by_rank(hg.overlap)(graph)) == len(graph.ranks)
        True
    """
    return or_summed()(analysis)


def or_summed(
    **sums: Callable[[pd.DataFrame], pd.DataFrame],
) -> Callable[
    [Callable[Concatenate[DependencyGraph, P], pd.DataFrame]],
    Callable[Concatenate[DependencyGraph | JobOnWorkers, P], pd.DataFrame],
]:
    """Return what makes `rank_by_rank` of an analysis, some values of whose option ``by`` sum the rows of all ranks.

    The analysis itself is only asked for rows by rank, of a graph as of workers.
    """

    def decorated(
        analysis: Callable[Concatenate[DependencyGraph, P], pd.DataFrame],
    ) -> Callable[Concatenate[DependencyGraph | JobOnWorkers, P], pd.DataFrame]:
        @wraps(analysis)
        def answered(graph: DependencyGraph | JobOnWorkers, /, *given: P.args, **options: P.kwargs) -> pd.DataFrame:
            ask, summed = getattr(graph, "rank_by_rank", None), sums.get(str(options.get("by")))
            asked: dict[str, Any] = options | {"by": "rank"} if summed else options
            table = analysis(graph, *given, **asked) if ask is None else ask(answered, *given, **asked)  # type: ignore[arg-type]
            return summed(table) if summed else table

        return answered

    return decorated


def of_moments(
    analysis: Callable[[DependencyGraph], pd.DataFrame],
) -> Callable[[DependencyGraph | JobOnWorkers], pd.DataFrame]:
    """Return an analysis that the moments of a job on workers answer too, by their method of the same name."""

    @wraps(analysis)
    def answered(graph: DependencyGraph | JobOnWorkers) -> pd.DataFrame:
        ask = getattr(graph, "of_moments", None)
        return analysis(graph) if ask is None else ask(analysis.__name__)  # type: ignore[arg-type] # it is a graph

    return answered


def over_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return a breakdown with one row per rank and name as one with one row per name, the largest time first.

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
    if "at_most_us" in table:
        merged["known_us"] = known_us(merged)
        order[0] = "known_us"
    merged["share_percent"] = 100 * merged[order[0]] / (merged[order[0]].sum() or float("nan"))
    merged = merged.sort_values(order, ascending=False, kind="stable", ignore_index=True)
    return merged.drop(columns="known_us", errors="ignore")


def known_us(table: pd.DataFrame) -> pd.Series[float]:
    """Return the time of each row of a breakdown without durations that were cut, whose true length is unknown.

    Example:
        >>> known_us(pd.DataFrame({"total_us": [9.0, 5.0], "at_most_us": [8.0, 0.0]})).tolist()
        [1.0, 5.0]
    """
    total_us = table["device_us"] if "device_us" in table else table["total_us"]
    return total_us - table["at_most_us"] if "at_most_us" in table else total_us


def by_class(table: pd.DataFrame) -> pd.DataFrame:
    """Return a breakdown by module as one by class, over all ranks: Linear_0 and Linear_1 are one row, Linear.

    Returns:
        ``kind``, ``name`` (str: of modules the class), ``count``, ``host_self_us``, ``device_count``, ``device_us``
        summed, ``share_percent`` (float64: of the device time of all rows); the most device time first.
    """
    bare = table["name"].str.replace(r"_\d+$", "", regex=True)
    sums = ["count", "host_self_us", "device_count", "device_us"]
    sums += ["at_most_us"] if "at_most_us" in table else []
    named = table.assign(name=bare.where(table["kind"] == "module", table["name"]))
    classes = named.groupby(["kind", "name"], as_index=False, sort=False)[sums].sum()
    classes["known_us"] = known_us(classes)
    classes["share_percent"] = 100 * classes["known_us"] / (classes["known_us"].sum() or float("nan"))
    classes = classes.sort_values(["known_us", "host_self_us"], ascending=False, kind="stable", ignore_index=True)
    return classes.drop(columns="known_us")
