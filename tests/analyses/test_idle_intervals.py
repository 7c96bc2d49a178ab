from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load


def test_a_pause_has_the_work_before_and_behind_it_and_its_launch() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel("late", 105, 5, 2)]
    graph = load(events)
    (row,) = hg.idle_intervals(graph).to_dict("records")
    assert [graph.describe(row[each]) for each in ("before", "after")] == [
        graph.describe(work) for work in graph.select(kind="device")
    ]
    assert (row["before_name"], row["after_name"], row["cause"]) == (COMPUTE, "late", "host_wait")
    assert (row["start_us"], row["pause_us"], row["gap_us"], row["launch_late_us"]) == (10, 95, 95, 90)
    assert graph.activities.cause[row["after"]] == row["launch"]


def test_work_in_the_shadow_of_other_work_waits_for_nothing() -> None:
    # as HTA measures, from the end of the work that started before, the third has a pause of 25 µs
    table = hg.idle_intervals(load([kernel(COMPUTE, 0, 50), kernel(COMPUTE, 10, 5), kernel(COMPUTE, 40, 20)]))
    assert table["pause_us"].tolist() == [0, 0]
    assert table["gap_us"].tolist() == [-40, 25]
    assert table["start_us"].tolist() == [50, 50]


def test_work_that_no_call_launched_has_no_launch() -> None:
    (row,) = hg.idle_intervals(load([kernel(COMPUTE, 0, 5), kernel(COMPUTE, 40, 20)])).to_dict("records")
    assert row["launch"] == -1
    assert math.isnan(row["launch_late_us"])


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_pauses_are_those_that_the_breakdown_sums_up(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    table = hg.idle_intervals(graph)
    pauses = table[table["pause_us"] > 0].groupby(["rank", "device", "stream", "cause"])["pause_us"]
    whole = hg.idle_breakdown(graph).set_index(["rank", "device", "stream", "cause"])
    whole = whole[whole["count"] > 0]
    assert pauses.sum().to_dict() == pytest.approx(whole["idle_us"].to_dict())
    assert pauses.size().to_dict() == whole["count"].to_dict()


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_every_work_but_a_streams_first_has_a_row_measured_from_the_one_before(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    acts = graph.activities
    expected = []
    for rank in graph.ranks:
        by_stream: dict[int, list[tuple[int, int]]] = {}
        for work in graph.select(kind="device", rank=rank):
            by_stream.setdefault(graph.lane_of(work).stream, []).append((int(acts.start[work]), work))
        for _, works in sorted(by_stream.items()):
            works.sort()
            for place in range(1, len(works)):
                start, work = works[place]
                before = works[place - 1][1]
                free = max(int(acts.end[each]) for _, each in works[:place])
                gap = start - int(acts.end[before])
                expected.append((rank, before, work, max(0, start - free) / 1000, gap / 1000))
    table = hg.idle_intervals(graph)
    assert [*table[["rank", "before", "after", "pause_us", "gap_us"]].itertuples(index=False, name=None)] == expected


def test_the_longest_are_those_of_the_whole_table() -> None:
    table = hg.idle_intervals(hg.load("data/demo"))
    some = table[table["pause_us"] > 0].sort_values("pause_us", ascending=False, kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(hg.idle_intervals(hg.load("data/demo"), longest=7), some.head(7))
