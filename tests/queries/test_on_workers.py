"""An analysis asks workers where there are some, and the graph else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.on_workers import of_moments, or_summed, rank_by_rank
from tests.reach import DATA, graph_of


class Workers:
    """Answers with what it was asked."""

    def rank_by_rank(self, analysis: Callable[..., pd.DataFrame], *given: Any, **options: Any) -> pd.DataFrame:
        return pd.DataFrame({"asked": [analysis.__name__], "given": [(given, options)]})

    def of_moments(self, analysis: str) -> pd.DataFrame:
        return pd.DataFrame({"asked": [analysis]})


def ranks(graph: DependencyGraph, by: str = "rank") -> pd.DataFrame:
    return pd.DataFrame({"rank": list(graph.ranks), "by": by})


def test_a_graph_answers_itself() -> None:
    graph = graph_of(DATA / "demo")
    assert rank_by_rank(ranks)(graph).equals(ranks(graph))
    assert of_moments(lambda each: ranks(each))(graph).equals(ranks(graph))


def test_workers_are_asked_for_the_analysis_and_its_options() -> None:
    assert rank_by_rank(ranks)(Workers(), by="x").to_dict("records") == [{"asked": "ranks", "given": ((), {"by": "x"})}]
    assert of_moments(ranks)(Workers())["asked"].tolist() == ["ranks"]


def test_a_sum_is_made_here_of_what_workers_answer_by_rank() -> None:
    summed = or_summed(job=lambda table: table.assign(summed=True))(ranks)(Workers(), by="job")
    assert summed.to_dict("records") == [{"asked": "ranks", "given": ((), {"by": "rank"}), "summed": True}]
