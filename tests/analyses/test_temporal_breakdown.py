from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph
from tests import oracles
from tests.strategies import COMMUNICATE, COMPUTE, COPY, Json, kernel, load, op, traces

PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")


def test_each_moment_belongs_to_one_part() -> None:
    events = [kernel(COMPUTE, 10, 20), kernel(COMMUNICATE, 25, 15, stream=20), kernel(COPY, 35, 10, stream=30),
              kernel(COMPUTE, 60, 40)]  # fmt: skip
    (row,) = hg.temporal_breakdown(load(events)).to_dict("records")
    assert row == {
        "rank": 0, "executor": "device", "window_us": 90.0, "computation_us": 60.0, "exposed_communication_us": 10.0,
        "exposed_memory_us": 5.0, "other_us": 0.0, "idle_us": 15.0, "computation_percent": 100 * 60 / 90,
        "exposed_communication_percent": 100 * 10 / 90, "exposed_memory_percent": 100 * 5 / 90, "other_percent": 0.0,
        "idle_percent": 100 * 15 / 90,
    }  # fmt: skip


def test_a_rank_without_device_work_is_judged_by_its_threads() -> None:
    (row,) = hg.temporal_breakdown(load([op("a", 0, 30), op("gloo:all_reduce", 40, 10)])).to_dict("records")
    assert row["executor"] == "host"
    assert [row[f"{part}_us"] for part in PARTS] == [30, 10, 0, 0, 10]


def test_an_empty_window_has_no_shares() -> None:
    (row,) = hg.temporal_breakdown(load({0: []})).to_dict("records")
    assert row["window_us"] == 0
    assert math.isnan(row["idle_percent"])


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_parts_are_what_the_slow_sweep_finds(events: list[Json]) -> None:
    done = oracles.works(events)
    (row,) = hg.temporal_breakdown(load(events)).to_dict("records")
    if done:
        expected = oracles.temporal(done)
        ours = (row["computation_us"], row["exposed_communication_us"], row["exposed_memory_us"], row["idle_us"])
        assert ours == tuple(expected[part] for part in ("computation", "communication", "memory", "idle"))


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_shares_sum_to_a_hundred(events: list[Json]) -> None:
    (row,) = hg.temporal_breakdown(load(events)).to_dict("records")
    if row["window_us"]:
        assert math.isclose(sum(row[f"{part}_percent"] for part in PARTS), 100)


def two_devices() -> DependencyGraph:
    """Return a process with two devices that work in turns."""
    events = []
    for at in range(0, 400, 100):
        device = at // 100 % 2
        work = kernel(COMPUTE, at, 90, at + 1)
        events.append(work | {"pid": device, "args": work["args"] | {"device": device}})
    return load(events)


def test_each_of_several_devices_of_a_process_has_its_own_time() -> None:
    table = hg.temporal_breakdown(two_devices())
    assert table["executor"].tolist() == ["device 0", "device 1"]
    assert table["rank"].tolist() == [0, 0]
    assert table["computation_us"].tolist() == [180, 180]
    assert table["window_us"].tolist() == [390, 390]
    (rank,) = hg.temporal_breakdown(two_devices(), by="rank").to_dict("records")
    assert (rank["executor"], rank["computation_us"], rank["idle_us"]) == ("device", 360, 30)


def test_a_device_is_idle_while_another_one_of_its_process_works() -> None:
    idle = hg.idle_breakdown(two_devices(), by="rank")
    assert idle["rank"].unique().tolist() == [0]
    assert idle["idle_us"].sum() == 220
    assert two_devices().device_pauses.places.tolist() == [[0, 0], [0, 1]]


def test_what_rows_are_for_is_checked() -> None:
    with pytest.raises(ValueError, match="by"):
        hg.temporal_breakdown(two_devices(), by="stream")  # type: ignore[arg-type]
