from __future__ import annotations

from pathlib import Path

import pytest

from htagraph import DependencyGraph
from tests.reach import DATA, JOBS, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load


def fact(graph: DependencyGraph, what: str, part: str = "") -> tuple[int, int]:
    table = graph.coverage()
    row = table[(table["what"] == what) & (table["part"] == part if part else True)].iloc[0]
    return int(row["count"]), int(row["total"])


def test_work_without_launch_or_predecessor_is_counted() -> None:
    graph = load([launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), kernel(COMPUTE, 20, 5), kernel(COMPUTE, 0, 5, stream=9)])
    assert fact(graph, "any predecessor") == (2, 3)
    assert fact(graph, "launch", "device work") == (1, 3)


def test_edges_are_told_by_provenance() -> None:
    graph = graph_of(DATA / "demo")
    table = graph.coverage()
    edges = table[table["part"] == "edges"]
    assert edges["count"].sum() == len(graph.edges)
    assert edges.loc[edges["what"] == "launch", "detail"].tolist() == ["observed, confidence 100 to 100 %"]


def test_collectives_are_told_by_the_key_that_matched_them() -> None:
    table = graph_of(DATA / "demo").coverage()
    matched = table[(table["part"] == "collectives") & (table["what"] == "all_reduce")]
    assert matched["count"].tolist() == [6]
    assert "matched by" in matched["detail"].iloc[0]


@pytest.mark.slow
@pytest.mark.parametrize("path", JOBS, ids=label)
def test_no_part_is_larger_than_the_whole(path: Path) -> None:
    table = graph_of(path).coverage()
    assert (table["count"] <= table["total"]).all()
    shares = table["share_percent"].dropna()
    assert ((shares >= 0) & (shares <= 100)).all()
