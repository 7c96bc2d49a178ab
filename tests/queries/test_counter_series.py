"""Queue length and copy bandwidth over time, against adding up by hand."""

from __future__ import annotations

import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import copy_kind
from htagraph.core.statistics import DISTRIBUTION
from htagraph.queries.counter_series import bandwidth_changes, distribution, lasting_us, launched, queue_changes
from tests.strategies import COMPUTE, COPY, Job, Json, annotation, jobs, kernel, launch, load, op


def test_a_queue_grows_with_each_launch_and_shrinks_with_each_start() -> None:
    graph = load([launch(0, 1, 1), kernel(COMPUTE, 5, 9, 1), launch(2, 1, 2), kernel(COMPUTE, 14, 1, 2)])
    table = queue_changes(graph)
    assert table[["time_us", "queue_length"]].to_numpy().tolist() == [[0, 1], [2, 2], [5, 1], [14, 0]]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_every_queue_begins_and_ends_empty(job: Job) -> None:
    table = queue_changes(load(job))
    assert (table["queue_length"] >= 0).all()
    by_stream = table.groupby(["rank", "device", "stream"])["queue_length"]
    assert (by_stream.last() == 0).all()
    assert (by_stream.first() > 0).all()


def _copy(start: int, duration: int, size: int, **args: float) -> Json:
    event = kernel(COPY, start, duration)
    return event | {"args": event["args"] | {"bytes": size} | args}


def test_the_bandwidths_of_copies_under_way_add_up() -> None:
    events = [_copy(0, 10, 20_000), _copy(5, 10, 30_000), _copy(20, 0, 4_000)]
    events[1]["tid"] = events[1]["args"]["stream"] = 20
    table = bandwidth_changes(load(events))
    assert table[["time_us", "bandwidth_gb_s"]].to_numpy().tolist() == [
        [0, 2], [5, 5], [10, 3], [15, 0], [20, 4], [21, 0],  # a copy of no duration counts for 1 µs
    ]  # fmt: skip
    assert set(table["copy"]) == {"Memcpy DtoD"}


def test_a_recorded_bandwidth_goes_first_unless_no_memory_is_that_fast() -> None:
    recorded = _copy(0, 10, 20_000, **{"memory bandwidth (GB/s)": 7.0})
    absurd = _copy(20, 10, 20_000, **{"memory bandwidth (GB/s)": 2e9})
    table = bandwidth_changes(load([recorded, absurd]))
    assert table["bandwidth_gb_s"].tolist() == [7, 0, 2, 0]


def _sized(event: Json, i: int) -> Json:
    """Return a copy with a number of bytes, any other event as it is."""
    return event | {"args": event["args"] | {"bytes": 1000 * (i + 1)}} if event["name"] == COPY else event


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_each_row_has_the_sum_of_all_copies_under_way(job: Job) -> None:
    graph = load({rank: [_sized(event, i) for i, event in enumerate(events)] for rank, events in job.items()})
    acts = graph.activities
    copies = [row for row in range(len(acts)) if acts.kind[row] == ActivityKind.MEMORY]
    table = bandwidth_changes(graph)
    assert len(table) == 2 * len(copies)
    for row in table.drop_duplicates(["rank", "copy", "time_us"], keep="last").to_dict("records"):
        now = graph.origin_ns + round(1000 * row["time_us"])
        under_way = 0.0
        for one in copies:
            begin, took = int(graph.time[2 * one]), int(acts.duration[one]) or 1000
            same = acts.rank[one] == row["rank"] and copy_kind(graph.names[acts.name[one]]) == row["copy"]
            if same and begin <= now < begin + took:
                under_way += max(0, int(acts.arg("bytes")[one])) / took
        assert row["bandwidth_gb_s"] == pytest.approx(under_way, abs=1e-6)


def test_a_value_lasts_until_the_next_of_its_counter() -> None:
    table = pd.DataFrame({"stream": [7, 7, 7, 20, 20], "time_us": [0.0, 4.0, 5.0, 1.0, 9.0]})
    assert lasting_us(table, ["stream"]).tolist() == [4, 1, 0, 8, 0]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1e6)), min_size=1, max_size=20))
def test_a_distribution_is_that_of_each_groups_list(rows: list[tuple[int, float]]) -> None:
    keys = pd.Series([row[0] for row in rows], name="stream")
    table = distribution(pd.Series([row[1] for row in rows]), [keys])
    assert table.columns.tolist() == list(DISTRIBUTION)
    assert table.index.tolist() == sorted({row[0] for row in rows})
    for stream, got in table.iterrows():
        values = [row[1] for row in rows if row[0] == stream]
        assert got["count"] == len(values)
        assert got["median"] == pytest.approx(statistics.median(values))
        assert got[["p25", "p75"]].tolist() == pytest.approx(np.percentile(values, [25, 75]).tolist())
        assert got[["min", "max"]].tolist() == [min(values), max(values)]
        assert got["mean"] == pytest.approx(statistics.fmean(values), abs=1e-6)


def test_a_launch_is_paired_with_the_work_that_it_launched() -> None:
    graph = load([annotation("a", 0, 90), op("b", 5, 50), launch(10, 2, 1), kernel(COMPUTE, 60, 5, 1)])
    assert [each.tolist() for each in launched(graph)] == [[2], [3]]
