"""Analyses of a job whose ranks lie with workers: what each rank answers alone, and what its moments answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["JobOnWorkers", "of_moments", "or_summed", "rank_by_rank"]

P = ParamSpec("P")


class JobOnWorkers(Protocol):
    """A job whose ranks lie with workers, as `htagraph.load` returns it if an engine is given."""

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

    Args:
        sums: by such a value, what makes its result of the one by rank.
    """

    def decorated(
        analysis: Callable[Concatenate[DependencyGraph, P], pd.DataFrame],
    ) -> Callable[Concatenate[DependencyGraph | JobOnWorkers, P], pd.DataFrame]:
        @wraps(analysis)
        def answered(graph: DependencyGraph | JobOnWorkers, /, *given: P.args, **options: P.kwargs) -> pd.DataFrame:
            ask = getattr(graph, "rank_by_rank", None)
            if ask is None:
                return analysis(graph, *given, **options)  # type: ignore[arg-type] # it is a graph
            summed = sums.get(str(options.get("by")))
            if summed is None:
                return ask(answered, *given, **options)
            return summed(ask(answered, *given, **(options | {"by": "rank"})))

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
