"""Allocations and frees as one table, against the events themselves."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.queries.memory_events import memory_events
from tests.strategies import MAIN, OTHER, load, op
from tests.trace.profiler_files.made import allocation

OPS = [("outer", 0, 30, MAIN), ("inner", 10, 10, MAIN), ("aside", 5, 20, OTHER)]
drawn_events = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(-9, 9).filter(bool), st.sampled_from((-1, 0, 1)), st.sampled_from((MAIN, OTHER))
    ),
    unique_by=lambda event: event[0],
    min_size=1,
)  # fmt: skip


def running(moment: int, thread: int) -> str:
    """Return the operator that started last of those of a thread that run at a moment inside them."""
    around = [(start, name) for name, start, took, tid in OPS if tid == thread and start <= moment <= start + took]
    return max(around)[1] if around else ""


def device(number: int) -> str:
    return "cpu" if number < 0 else f"cuda:{number}"


@given(drawn_events)
@settings(max_examples=60)
def test_the_table_is_the_events_by_device_and_time_with_running_sums(drawn: list[tuple[int, int, int, int]]) -> None:
    made = [allocation(us, size, i, device=number, tid=tid) for i, (us, size, number, tid) in enumerate(drawn, 1)]
    table = memory_events(load({3: [*(op(*each) for each in OPS), *made]}))
    expected: list[list[Any]] = []
    for number in sorted({number for _, _, number, _ in drawn}):
        of_device = sorted((us, size, tid, i) for i, (us, size, each, tid) in enumerate(drawn, 1) if each == number)
        totals = accumulate(size for _, size, _, _ in of_device)
        expected += [
            [3, device(number), float(us), size, total, i, running(us, tid)]
            for (us, size, tid, i), total in zip(of_device, totals, strict=True)
        ]
    columns = ["rank", "device", "time_us", "delta_bytes", "allocated_bytes", "address", "name"]
    assert table[columns].values.tolist() == expected
    assert (table["activity"] >= 0).tolist() == [row[-1] != "" for row in expected]


def test_totals_that_the_profiler_gave_are_not_summed_again() -> None:
    made = [allocation(1, 8, **{"Total Allocated": 108, "Total Reserved": 200}), allocation(2, 4)]
    table = memory_events(load([op("a", 0, 9), *made]))
    assert table["allocated_bytes"].tolist() == [108, 12]
    assert table["reserved_bytes"].tolist() == [200, 0]


def test_ranks_come_in_their_order_and_without_events_there_are_no_rows() -> None:
    table = memory_events(load({5: [op("a", 0, 9), allocation(1, 8)], 2: [op("a", 0, 9), allocation(3, 4)]}))
    assert table["rank"].tolist() == [2, 5]
    empty = memory_events(load([op("a", 0, 9)]))
    assert empty.dtypes.to_dict() == table.dtypes.to_dict()
    assert len(empty) == 0
