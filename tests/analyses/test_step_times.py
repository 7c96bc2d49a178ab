from __future__ import annotations

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, step, traces


def test_a_step_lasts_until_its_device_work_is_over() -> None:
    events = [op("before", 0, 1), step(3, 10, 20), launch(15, 2, 1), kernel(COMPUTE, 25, 30, 1)]
    events += [step(4, 30, 10), op("in it", 31, 2)]
    assert hg.step_times(load(events)).to_dict("records") == [
        {"rank": 0, "step": 3, "start_us": 10.0, "end_us": 55.0, "duration_us": 45.0},
        {"rank": 0, "step": 4, "start_us": 30.0, "end_us": 40.0, "duration_us": 10.0},
    ]


def test_rows_are_ordered_by_rank_and_step() -> None:
    table = hg.step_times(load({1: [step(2, 5, 5), step(1, 0, 5)], 0: [step(7, 1, 2)]}))
    assert table[["rank", "step"]].to_numpy().tolist() == [[0, 7], [1, 1], [1, 2]]


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_a_step_ends_with_the_last_work_of_the_launches_inside_it(events: list[Json]) -> None:
    calls = {
        e["args"]["correlation"]: e["ts"]
        for e in events
        if e.get("cat") in oracles.RUNTIME and e["args"].get("correlation")
    }
    marks = {e["name"]: (e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep")}
    table = hg.step_times(load(events)).set_index("step")
    assert [f"ProfilerStep#{number}" for number in table.index] == sorted(marks)
    for number, row in table.iterrows():
        low, high = marks[f"ProfilerStep#{number}"]
        ends = [e["ts"] + e["dur"] for e in events if e.get("cat") in oracles.DEVICE
                and low <= calls.get(e["args"]["correlation"], -1) < high]  # fmt: skip
        assert row["duration_us"] == max([high, *ends]) - low


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_a_step_is_never_shorter_than_its_annotation(events: list[Json]) -> None:
    graph = load(events)
    marks = graph.select(kind="step").to_frame().set_index("step")["duration_us"]
    for row in hg.step_times(graph).to_dict("records"):
        assert row["duration_us"] >= marks[row["step"]]
