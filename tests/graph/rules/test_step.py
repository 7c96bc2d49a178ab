from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import EdgeKind
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op, step


def test_a_step_is_over_when_its_last_device_work_is() -> None:
    graph = load([step(3, 0, 10), launch(1, 1, 1), kernel(COMPUTE, 5, 40, 1)])
    (boundary,) = graph.select(kind="boundary")
    assert graph.activities.end[boundary] - graph.origin_ns == 45_000
    assert graph.activities.step[boundary] == 3
    assert edges_by_name(graph, EdgeKind.STEP) == [
        ("ProfilerStep#3.end", "ProfilerStep#3.start", 0), (f"{COMPUTE}.end", "ProfilerStep#3.start", 0),
    ]  # fmt: skip


def test_without_device_work_a_step_is_over_with_its_annotation() -> None:
    graph = load([step(3, 0, 10), op("a", 2, 30)])
    (boundary,) = graph.select(kind="boundary")
    assert graph.activities.end[boundary] - graph.origin_ns == 10_000


def test_each_rank_has_a_boundary_of_its_own_for_each_step() -> None:
    graph = load({0: [step(1, 0, 5), step(2, 5, 5)], 1: [step(1, 0, 6)]})
    found = [
        (int(graph.activities.rank[row]), int(graph.activities.step[row])) for row in graph.select(kind="boundary")
    ]
    assert found == [(0, 1), (0, 2), (1, 1)]


def test_without_steps_there_is_no_boundary() -> None:
    graph = load([op("a", 0, 1)])
    assert len(graph.select(kind="boundary")) == 0
    assert graph.steps == ()


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_a_boundary_lies_at_the_last_end_of_its_step(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    acts = graph.activities
    for row in graph.select(kind="boundary"):
        rank, number = int(acts.rank[row]), int(acts.step[row])
        ends = [int(acts.end[each]) for each in graph.select(kind=["device", "step"], rank=rank, step=number)]
        assert acts.start[row] == acts.end[row] == max(ends)


def test_a_step_of_2020_is_an_operator() -> None:
    graph = load([op("ProfilerStep#3", 0, 10), op("a", 2, 3)])
    assert graph.steps == (3,)
    assert len(graph.select(kind="boundary", step=3)) == 1


def test_a_step_before_time_zero_and_of_a_large_number_ends_when_it_does(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": [step(999_999_999, -50, 20), op("a", 10, 1)]}))
    graph = hg.load({0: path})
    (boundary,) = graph.select(kind="boundary")
    assert graph.activities.start[boundary] == -30_000
