"""An analysis asks workers where there are some, and the graph else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.core.errors import Issue
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.on_workers import by_class, of_moments, or_summed, over_ranks, rank_by_rank
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, load


class Workers:
    """Answers with what it was asked."""

    issues: tuple[Issue, ...] = ()

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


def test_sums_over_ranks_are_sums() -> None:
    graph = load({0: [kernel(COMPUTE, 0, 10), kernel(COMPUTE, 20, 2)], 1: [kernel(COMPUTE, 0, 6), kernel("b", 9, 2)]})
    rows = over_ranks(hg.kernel_breakdown(graph)).to_dict("records")
    assert rows == [
        {"kind": "computation", "name": COMPUTE, "ranks": 2, "count": 3, "total_us": 18, "mean_us": 6, "min_us": 2,
         "max_us": 10, "share_percent": 90},
        {"kind": "computation", "name": "b", "ranks": 1, "count": 1, "total_us": 2, "mean_us": 2, "min_us": 2,
         "max_us": 2, "share_percent": 10},
    ]  # fmt: skip


@pytest.mark.parametrize("sums", [["count", "host_us", "host_self_us", "device_count", "device_us", "device_total_us"]])
def test_sums_over_ranks_are_those_of_pandas(sums: list[str]) -> None:
    by_rank = hg.operator_breakdown(graph_of(DATA / "demo"))
    merged = over_ranks(by_rank).set_index(["kind", "name"]).sort_index()
    pd.testing.assert_frame_equal(merged[sums], by_rank.groupby(["kind", "name"])[sums].sum().sort_index())
    assert merged["ranks"].eq(by_rank.groupby(["kind", "name"]).size()).all()
    assert merged["share_percent"].sum() == pytest.approx(100)


def test_instances_of_a_class_are_one_row() -> None:
    table = pd.DataFrame({
        "rank": [0, 0, 1, 0], "kind": ["module", "module", "module", "annotation"],
        "name": ["Linear_0", "Linear_1", "Linear_0", "part_7"], "count": [1, 2, 3, 4],
        "host_self_us": [1.0, 1.0, 1.0, 1.0], "device_count": [1, 1, 1, 1], "device_us": [2.0, 3.0, 5.0, 30.0],
    })  # fmt: skip
    assert by_class(table).to_dict("records") == [
        {"kind": "annotation", "name": "part_7", "count": 4, "host_self_us": 1.0, "device_count": 1,
         "device_us": 30.0, "share_percent": 75.0},
        {"kind": "module", "name": "Linear", "count": 6, "host_self_us": 3.0, "device_count": 3, "device_us": 10.0,
         "share_percent": 25.0},
    ]  # fmt: skip
