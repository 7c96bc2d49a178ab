"""The pauses of a device are the idle time of its rank, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.queries.device_pauses import device_pauses
from tests.reach import DATASETS, graph_of, label
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load


def sums_agree(graph: DependencyGraph) -> None:
    """Assert that pauses sum to the idle time of each rank and cause."""
    for row in hg.idle_breakdown(graph, by="rank").to_dict("records"):
        pauses = device_pauses(graph, row["rank"])
        of_cause = pauses[pauses["cause"] == row["cause"]]
        assert of_cause["pause_us"].sum() == pytest.approx(row["idle_us"])
        assert len(of_cause) == row["count"]


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_pauses_sum_to_the_idle_time_of_a_recorded_job(path: Path) -> None:
    sums_agree(graph_of(path))


@given(jobs())
def test_pauses_sum_to_the_idle_time_of_any_job(job: dict[int, list[Json]]) -> None:
    sums_agree(load(job))


def test_a_stream_that_pauses_beside_another_is_no_pause() -> None:
    graph = load([
        launch(0, 1, 1), kernel(COMPUTE, 2, 100, 1), launch(3, 1, 2), kernel("b", 5, 1, 2, stream=8), launch(6, 1, 3),
        kernel("b", 90, 30, 3, stream=8), launch(140, 5, 4), kernel("c", 150, 5, 4),
    ])  # fmt: skip
    table = device_pauses(graph, 0)
    assert table[["start_us", "pause_us", "cause"]].to_numpy().tolist() == [[120.0, 30.0, "host_wait"]]
    assert [graph.names[graph.activities.name[table[side].iloc[0]]] for side in ("before", "after")] == ["b", "c"]
