from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests.strategies import COMPUTE, Job, Json, jobs, kernel, launch, load, runtime


def changes(events: list[Json]) -> list[list[int]]:
    table = hg.queue_length(load(events))
    return table[["stream", "time_us", "queue_length"]].astype(int).to_numpy().tolist()


def test_a_launch_enqueues_and_its_work_leaves_when_it_starts() -> None:
    events = [launch(0, 1, 1), kernel(COMPUTE, 5, 9, 1), launch(2, 1, 2), kernel(COMPUTE, 14, 1, 2)]
    assert changes(events) == [[7, 0, 1], [7, 2, 2], [7, 5, 1], [7, 14, 0]]
    assert hg.queue_length(load(events))["activity"].tolist() == [0, 2, 1, 3]


def test_a_graph_launch_enqueues_all_works_of_a_stream_at_once() -> None:
    works = [*(kernel(COMPUTE, 5 + 5 * i, 4, 1) for i in range(3)), kernel(COMPUTE, 6, 4, 1, stream=20)]
    events = [runtime("cudaGraphLaunch", 0, 3, 1), *works]
    assert changes(events) == [[7, 0, 3], [7, 5, 2], [7, 10, 1], [7, 15, 0], [20, 0, 1], [20, 6, 0]]


def test_at_one_moment_enqueuing_comes_first() -> None:
    events = [launch(0, 1, 1), kernel(COMPUTE, 4, 1, 1), launch(4, 1, 2), kernel(COMPUTE, 9, 1, 2)]
    assert changes(events) == [[7, 0, 1], [7, 4, 2], [7, 4, 1], [7, 9, 0]]


def test_work_recorded_before_its_launch_was_enqueued_when_it_started() -> None:
    assert changes([launch(9, 1, 1), kernel(COMPUTE, 8, 1, 1)]) == [[7, 0, 1], [7, 0, 0]]


def test_work_without_a_launch_does_not_count() -> None:
    assert changes([kernel(COMPUTE, 0, 5)]) == []


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_length_is_the_number_of_works_enqueued_and_not_started(job: Job) -> None:
    graph = load(job)
    table = hg.queue_length(graph)
    acts = graph.activities
    called = [w for w in range(len(acts)) if acts.on_device[w] and acts.cause[w] >= 0]
    for row in table.drop_duplicates(["rank", "stream", "time_us"], keep="last").to_dict("records"):
        ns = round(row["time_us"] * 1000) + graph.origin_ns
        queued = [
            work
            for work in called
            if (acts.rank[work], graph.lane_of(work).stream) == (row["rank"], row["stream"])
            and min(graph.time[2 * acts.cause[work]], graph.time[2 * work]) <= ns < graph.time[2 * work]
        ]
        assert row["queue_length"] == len(queued)
    assert (table["queue_length"] >= 0).all()
    assert (table["activity"].isin(called)).sum() == len(called)


# by stream


def test_statistics_of_a_stream_are_over_changes_and_over_time() -> None:
    events = [launch(0, 1, 1), kernel(COMPUTE, 5, 5, 1), launch(2, 1, 2), kernel(COMPUTE, 10, 10, 2)]
    assert hg.queue_length(load(events), by="stream", full=2).to_dict("records") == [
        {"rank": 0, "device": 0, "stream": 7, "count": 4, "mean": 1.0, "std": pytest.approx(0.816496580927726),
         "min": 0.0, "p25": 0.75, "median": 1.0, "p75": 1.25, "max": 2.0, "mean_over_time": pytest.approx(1.3),
         "full_us": 3.0, "full_percent": pytest.approx(15.0)}
    ]  # fmt: skip


def test_every_stream_that_was_full_has_its_time() -> None:
    events = [each for i in (1, 2) for each in (launch(i, 1, i), kernel(COMPUTE, 9, 1, i, stream=i))]
    assert hg.queue_length(load(events), by="stream", full=1)["full_us"].tolist() == [8.0, 7.0]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_time_weighted_by_length_is_the_waiting_of_all_kernels(job: Job) -> None:
    graph = load(job)
    acts, table = graph.activities, hg.queue_length(graph, by="stream", full=1)
    changes = hg.queue_length(graph)
    spans = changes.groupby(["rank", "device", "stream"])["time_us"].agg(lambda times: times.max() - times.min())
    waited = [
        max(0, graph.time[2 * work] - graph.time[2 * acts.cause[work]])
        for work in range(len(acts))
        if acts.on_device[work] and acts.cause[work] >= 0
    ]
    total = (table["mean_over_time"].to_numpy() * spans.to_numpy()).sum()
    assert total == pytest.approx(sum(waited) / 1000, abs=1e-6)
    assert (table["full_us"].to_numpy() <= spans.to_numpy() + 1e-9).all()


@pytest.mark.parametrize("full", [0, -1, float("nan"), "x", None])
def test_a_length_that_cannot_be_is_refused(full: Any) -> None:
    with pytest.raises(ValueError, match="full="):
        hg.queue_length(load([]), by="stream", full=full)
