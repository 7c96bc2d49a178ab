"""Allocations and frees as the profiler recorded them."""

from __future__ import annotations

import pytest

import htagraph as hg
from tests.reach import SHARED
from tests.strategies import OTHER, load, op, step
from tests.trace.profiler_files.made import allocation

QWEN = SHARED / "tracelens" / "h100_qwen.json.gz"


def test_events_come_by_device_and_time_with_what_ran() -> None:
    job = [
        step(1, 0, 50), op("a", 2, 20), op("b", 5, 10), op("c", 0, 40, OTHER),
        allocation(30, -8), allocation(6, 8), allocation(7, 4, 2, device=-1), allocation(20, 16, 3, tid=OTHER),
        allocation(60, 1, 4, device=1),
    ]  # fmt: skip
    table = hg.memory.timeline(load({4: job}))
    assert table[["device", "time_us", "delta_bytes", "allocated_bytes", "name"]].values.tolist() == [
        ["cpu", 7.0, 4, 4, "b"],
        ["cuda:0", 6.0, 8, 8, "b"],
        ["cuda:0", 20.0, 16, 24, "c"],
        ["cuda:0", 30.0, -8, 16, "ProfilerStep#1"],
        ["cuda:1", 60.0, 1, 1, ""],
    ]
    assert table["rank"].eq(4).all()
    assert table["activity"].iloc[-1] == -1


def test_totals_are_the_profilers_where_it_gives_them() -> None:
    job = [op("a", 0, 9), allocation(1, 8, **{"Total Allocated": 108, "Total Reserved": 200})]
    (row,) = hg.memory.timeline(load(job)).to_dict("records")
    assert (row["allocated_bytes"], row["reserved_bytes"], row["address"]) == (108, 200, 1)


@pytest.mark.skipif(not QWEN.is_file(), reason="the shared traces are not here")
def test_the_totals_of_a_real_trace_move_by_what_is_allocated() -> None:
    table = hg.memory.timeline(hg.load({0: QWEN}))
    assert len(table) == 2450
    for _, mine in table.groupby("device"):
        assert (mine["allocated_bytes"].diff().iloc[1:] == mine["delta_bytes"].iloc[1:]).all()
