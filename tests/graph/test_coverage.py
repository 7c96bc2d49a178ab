from __future__ import annotations

from pathlib import Path

import pytest

from htagraph import DependencyGraph
from tests.reach import DATA, JOBS, graph_of, label
from tests.strategies import COMPUTE, LAUNCH, kernel, launch, load


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


def test_the_ledger_has_a_table_for_each_kind_of_group() -> None:
    served = [launch(0, 5, 1), kernel(COMPUTE, 10, 20, 1)]
    graph = load([*served, launch(100, 5, 2), launch(110, 5, 3)])
    (rank,) = graph.coverage(by="rank").to_dict("records")
    assert (rank["launches"], rank["lost_launches"], rank["lacks"]) == (3, 2, "the work of devices")
    (call,) = graph.coverage(by="call").to_dict("records")
    assert call == {"rank": 0, "call": LAUNCH, "launches": 3, "without_work": 2, "lost": 2}
    (stream,) = graph.coverage(by="stream").to_dict("records")
    assert (stream["stream"], stream["works"], stream["busy_us"]) == (7, 1, 20.0)
    (device,) = graph.coverage(by="device").to_dict("records")
    assert (device["first_us"], device["last_us"]) == (10.0, 30.0)
    (step,) = graph.coverage(by="step").to_dict("records")
    assert (step["step"], step["lost"]) == (-1, 2)
    with pytest.raises(ValueError, match="by"):
        graph.coverage(by="kernel")
