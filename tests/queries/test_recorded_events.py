"""Allocations and frees as one table, against the events themselves."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph.queries.recorded_events as module
from htagraph.core.kinds import ActivityKind
from htagraph.queries.recorded_events import (
    counter_ranges,
    device_annotations,
    memory_events,
    narrowest,
    operators_around,
)
from tests.strategies import COMPUTE, MAIN, OTHER, Job, Json, complete, jobs, kernel, launch, load, op, runtime
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


_intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=10)


def slow(work: list[tuple[int, int]], over: list[tuple[int, int]]) -> list[int]:
    found = []
    for start, took in work:
        around = [
            (length, -i)
            for i, (begin, length) in enumerate(over)
            if length and begin < start + max(took, 1) and begin + length > start
        ]
        found.append(-min(around)[1] if around else -1)
    return found


@pytest.mark.slow
@given(_intervals, _intervals, st.sampled_from([1, 7, 1 << 22]))
@settings(max_examples=200)
def test_the_narrowest_is_what_trying_all_finds(
    work: list[tuple[int, int]], over: list[tuple[int, int]], pairs: int
) -> None:
    columns = [np.array([pair[0] for pair in each], np.int64) for each in (work, over)]
    ends = [np.array([sum(pair) for pair in each], np.int64) for each in (work, over)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_PAIRS", pairs)  # however few are compared at once
        found = narrowest(columns[0], ends[0], columns[1], ends[1])
    assert found.tolist() == slow(work, over)


def test_annotations_know_the_lane_of_their_stream() -> None:
    marks = [complete("gpu_user_annotation", "a", 0, 5, tid) | {"pid": 0} for tid in (7, 20)]
    graph = load([kernel(COMPUTE, 0, 5), *marks])
    table = device_annotations(graph, 0)
    assert [graph.lanes[lane].stream if lane >= 0 else None for lane in table["lane"]] == [7, None]
    assert device_annotations(load([*marks]), 0).empty


def _ranges(*starts: int) -> list[Json]:
    return [complete("cuda_profiler_range", f"k{at}", at, 1, 0, cycles=10 * at) for at in starts]


def test_the_nth_range_in_time_belongs_to_the_nth_launch_of_any_thread(tmp_path: Path) -> None:
    events = [*_ranges(502, 500, 501), launch(5, 1, 1), launch(3, 1, 2, OTHER), launch(9, 1, 3)]
    graph = load(events, tmp_path)
    table = counter_ranges(graph, 0)
    assert table["kernel"].tolist() == ["k500", "k501", "k502"]
    assert table["range"].tolist() == [1, 2, 0]  # places in the file
    assert table["cycles"].tolist() == [5000, 5010, 5020]
    start = graph.activities.start[table["launch"]]
    assert (start - graph.origin_ns).tolist() == [0, 2000, 6000]


def test_a_driver_call_inside_a_runtime_call_is_not_counted_again(tmp_path: Path) -> None:
    inner = complete("cuda_driver", "cuLaunchKernel", 2, 1, correlation=1)
    graph = load([runtime("cudaLaunchKernel", 1, 4, 1), inner, *_ranges(500)], tmp_path)
    (call,) = counter_ranges(graph, 0)["launch"].tolist()
    assert graph.names[graph.activities.name[call]] == "cudaLaunchKernel"


def test_with_more_ranges_than_launches_none_is_given_a_launch(tmp_path: Path) -> None:
    graph = load([launch(3, 1, 1), *_ranges(500, 501)], tmp_path)
    assert counter_ranges(graph, 0)["launch"].tolist() == [-1, -1]


def test_a_rank_without_ranges_has_a_table_without_rows(tmp_path: Path) -> None:
    graph = load({0: [launch(3, 1, 1), *_ranges(500)], 1: [op("a", 0, 1)]}, tmp_path)
    assert [len(counter_ranges(graph, rank)) for rank in (0, 1, 7)] == [1, 0, 0]
    assert counter_ranges(graph, 1).columns.tolist() == ["range", "kernel", "launch"]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_operators_around_are_those_met_on_the_way_up(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    every = [-1, *range(len(acts))]
    for activity, around in zip(every, operators_around(graph, every), strict=True):
        above: list[int] = []
        while activity >= 0:
            above = [activity, *above] if acts.kind[activity] == ActivityKind.OP else above
            activity = int(acts.parent[activity])
        assert around == above
