"""The most memory in use on each device."""

from __future__ import annotations

import htagraph as hg
from tests.strategies import load, op
from tests.trace.profiler_files.made import allocation


def test_the_first_of_the_highest_moments_is_the_peak() -> None:
    job = [
        op("a", 0, 9), op("b", 10, 9),
        allocation(1, 8, 1), allocation(2, 5, 2), allocation(3, -5, 2), allocation(11, 5, 3), allocation(12, -8, 1),
    ]  # fmt: skip
    (row,) = hg.memory.peaks(load(job)).to_dict("records")
    assert (row["peak_bytes"], row["peak_us"], row["name"]) == (13, 2.0, "a")
    assert (row["first_bytes"], row["last_bytes"]) == (0, 5)
    assert (row["allocations"], row["allocated_bytes"], row["device"]) == (3, 18, "cuda:0")


def test_what_was_there_before_counts() -> None:
    told = {"Total Allocated": 92, "Total Reserved": 300}
    (row,) = hg.memory.peaks(load([op("a", 0, 9), allocation(1, -8, **told)])).to_dict("records")
    assert (row["peak_bytes"], row["first_bytes"], row["reserved_bytes"]) == (92, 100, 300)


def test_each_rank_and_device_has_a_row() -> None:
    job = {0: [op("a", 0, 9), allocation(1, 8), allocation(2, 8, device=-1)], 3: [op("a", 0, 9), allocation(1, 8)]}
    table = hg.memory.peaks(load(job))
    assert table[["rank", "device"]].values.tolist() == [[0, "cpu"], [0, "cuda:0"], [3, "cuda:0"]]
