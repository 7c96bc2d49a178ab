from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import ActivityKind
from tests.strategies import COMPUTE, COPY, Job, Json, jobs, kernel, launch, load, op, runtime

SUM: list[Json] = [
    op("aten::linear", 0, 50), op("aten::mm", 5, 30), launch(10, 2, 1), launch(20, 2, 2),
    kernel(COMPUTE, 40, 5, 1), kernel("elementwise", 50, 5, 2),
]  # fmt: skip


def test_launches_belong_to_the_innermost_operator() -> None:
    assert hg.operator_kernels(load(SUM)).to_dict("records") == [
        {"rank": 0, "operator": "aten::mm", "kernel_sequence": f"{COMPUTE} -> elementwise", "kernels": 2, "count": 1,
         "launch_delay_us": 5.0, "kernel_delay_us": 30.0, "device_us": 10.0}
    ]  # fmt: skip


def test_the_innermost_operator_that_is_asked_for_is_found() -> None:
    assert hg.operator_kernels(load(SUM), op="aten::l*")["operator"].tolist() == ["aten::linear"]
    assert hg.operator_kernels(load(SUM), op="custom::*").empty


def test_an_operator_of_another_thread_does_not_enclose_a_launch() -> None:
    assert hg.operator_kernels(load([op("aten::mm", 0, 50, tid=2), launch(10, 2, 1), kernel(COMPUTE, 40, 5, 1)])).empty


def test_copies_can_be_left_out() -> None:
    events = [op("aten::to", 0, 50), runtime("cudaMemcpyAsync", 10, 2, 1), kernel(COPY, 40, 5, 1)]
    assert hg.operator_kernels(load(events))["kernel_sequence"].tolist() == [COPY]
    assert hg.operator_kernels(load(events), memory=False).empty


def test_delays_are_means_over_calls_with_the_same_sequence() -> None:
    events = []
    for i, late in enumerate((1, 3)):
        at = 100 * i
        events += [op("aten::mm", at, 50), launch(at + late, 2, i + 1), kernel(COMPUTE, at + 10 * late, 5, i + 1)]
    (row,) = hg.operator_kernels(load(events)).to_dict("records")
    assert (row["count"], row["launch_delay_us"], row["kernel_delay_us"]) == (2, 2.0, 18.0)


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_it_is_what_a_walk_up_from_each_launch_finds(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    calls = defaultdict(list)
    for work in sorted(range(len(acts)), key=lambda i: (acts.start[i], i)):
        launched_by = above = int(acts.cause[work]) if acts.on_device[work] else -1
        while above >= 0 and acts.kind[above] != ActivityKind.OP:
            above = int(acts.parent[above])
        if above >= 0:
            calls[above].append((int(acts.start[launched_by]), launched_by, work))
    expected = defaultdict(list)
    for operator, found in calls.items():
        found.sort(key=lambda each: each[:2])
        start, _, first = found[0]
        names = " -> ".join(graph.names[acts.name[work]] for *_, work in found)
        key = (int(acts.rank[operator]), graph.names[acts.name[operator]], names)
        expected[key].append((start - acts.start[operator], acts.start[first] - start))
    rows = hg.operator_kernels(graph).to_dict("records")
    found_rows = {(row["rank"], row["operator"], row["kernel_sequence"]): row for row in rows}
    assert set(found_rows) == set(expected)
    for key, delays in expected.items():
        row = found_rows[key]
        assert row["count"] == len(delays)
        assert row["launch_delay_us"] == pytest.approx(sum(each for each, _ in delays) / len(delays) / 1000)
        assert row["kernel_delay_us"] == pytest.approx(sum(each for _, each in delays) / len(delays) / 1000)
