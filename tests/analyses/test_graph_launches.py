from __future__ import annotations

import math

import htagraph as hg
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load, runtime, step


def test_a_graph_launch_is_told_with_what_it_replayed() -> None:
    works = [kernel(COMPUTE, 20, 10, 1), kernel(COMPUTE, 40, 10, 1), kernel(COMMUNICATE, 25, 10, 1, stream=20)]
    events = [step(4, 0, 90), runtime("cudaGraphLaunch", 5, 10, 1), *works, launch(60, 1, 2), kernel(COMPUTE, 70, 5, 2)]
    assert hg.graph_launches(load(events)).to_dict("records") == [
        {"rank": 0, "launch": 1, "name": "cudaGraphLaunch", "step": 4, "graph_id": -1, "start_us": 5.0,
         "call_us": 10.0, "delay_us": 5.0, "kernels": 3, "streams": 2, "span_us": 30.0, "busy_us": 25.0, "gap_us": 5.0,
         "gap_percent": 100 * 5 / 30, "communication_us": 10.0}
    ]  # fmt: skip


def test_each_replay_has_a_row() -> None:
    events = [
        each for i in (1, 2) for each in (runtime("hipGraphLaunch", 50 * i, 3, i), kernel(COMPUTE, 50 * i + 9, 4, i))
    ]
    table = hg.graph_launches(load(events))
    assert table[["start_us", "delay_us", "span_us", "busy_us"]].to_numpy().tolist() == [[0, 6, 4, 4], [50, 6, 4, 4]]


def test_a_launch_without_recorded_work_is_still_told() -> None:
    (row,) = hg.graph_launches(load([runtime("cudaGraphLaunch", 0, 3, 1)])).to_dict("records")
    assert (row["kernels"], row["span_us"]) == (0, 0.0)
    assert math.isnan(row["delay_us"])
    assert math.isnan(row["gap_percent"])
