from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op


def idle_by_cause(*events: Json) -> dict[str, float]:
    table = hg.idle_breakdown(load(list(events)))
    return dict(zip(table["cause"], table["idle_us"], strict=True))


def test_a_stream_that_waits_for_a_late_launch_waits_for_the_host() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel(COMPUTE, 105, 5, 2)]
    assert idle_by_cause(*events) == {"host_wait": 95.0, "kernel_wait": 0.0, "other": 0.0}


def test_a_short_pause_of_queued_work_is_the_devices_own() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 50, 1), launch(3, 2, 2), kernel(COMPUTE, 57, 5, 2)]
    assert idle_by_cause(*events) == {"host_wait": 0.0, "kernel_wait": 2.0, "other": 0.0}


def test_a_long_pause_of_queued_work_is_something_else() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 50, 1), launch(3, 2, 2), kernel(COMPUTE, 157, 5, 2)]
    assert idle_by_cause(*events) == {"host_wait": 0.0, "kernel_wait": 0.0, "other": 102.0}


def test_what_counts_as_a_short_pause_can_be_chosen() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 50, 1), launch(3, 2, 2), kernel(COMPUTE, 157, 5, 2)]
    table = hg.idle_breakdown(load(events), kernel_pause_us=200)
    assert table.set_index("cause")["count"].to_dict() == {"host_wait": 0, "kernel_wait": 1, "other": 0}


def test_overlapping_work_leaves_no_pause() -> None:
    assert sum(idle_by_cause(kernel(COMPUTE, 0, 50), kernel(COMPUTE, 10, 5), kernel(COMPUTE, 40, 20)).values()) == 0


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_causes_are_what_the_definition_gives(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    table = hg.idle_breakdown(graph)
    ours = {
        (r, s, c): round(1000 * us)
        for r, s, c, us in table[["rank", "stream", "cause", "idle_us"]].itertuples(index=False)
    }
    assert {key: ns for key, ns in ours.items() if ns} == dict(oracles.idle(graph, "stream"))


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_work_and_pauses_of_a_stream_sum_to_its_window(job: dict[int, list[Json]]) -> None:
    table = hg.idle_breakdown(load(job))
    for rank, stream in {(int(rank), int(stream)) for rank, stream in table[["rank", "stream"]].to_numpy()}:
        pauses = table.loc[(table["rank"] == rank) & (table["stream"] == stream), "idle_us"].sum()
        mine = [work for work in oracles.works(job[rank]) if work.stream == stream]
        assert round(pauses) == oracles.pauses(mine)


# by rank


def test_a_rank_is_not_idle_while_a_stream_waits_and_another_runs() -> None:
    events = [kernel(COMPUTE, 0, 5, stream=7), kernel(COMPUTE, 3, 30, stream=20), kernel(COMPUTE, 40, 5, stream=7)]
    assert hg.idle_breakdown(load(events), by="rank")["idle_us"].sum() == 7


def test_a_ranks_pause_has_the_cause_of_the_kernel_that_ends_it() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel(COMPUTE, 105, 5, 2, stream=20)]
    assert hg.idle_breakdown(load(events), by="rank").to_dict("records") == [
        {"rank": 0, "cause": "host_wait", "idle_us": 95.0, "count": 1, "share_percent": 100 * 95 / 105},
        {"rank": 0, "cause": "kernel_wait", "idle_us": 0.0, "count": 0, "share_percent": 0.0},
        {"rank": 0, "cause": "other", "idle_us": 0.0, "count": 0, "share_percent": 0.0},
    ]


def test_a_rank_without_device_work_has_no_rows() -> None:
    assert set(hg.idle_breakdown(load({0: [op("a", 0, 5)], 1: [kernel(COMPUTE, 0, 5)]}), by="rank")["rank"]) == {1}


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_causes_of_ranks_are_what_the_definition_gives(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    ours = {
        (rank, -1, cause): round(1000 * us)
        for rank, cause, us, *_ in hg.idle_breakdown(graph, by="rank").itertuples(index=False)
    }
    assert {key: ns for key, ns in ours.items() if ns} == dict(oracles.idle(graph, "rank"))


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_a_ranks_causes_sum_to_the_idle_time_of_the_temporal_breakdown(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    ours = hg.idle_breakdown(graph, by="rank").groupby("rank")["idle_us"].sum()
    table = hg.temporal_breakdown(graph).set_index("rank")
    theirs = table.loc[table["executor"] == "device", "idle_us"]
    assert ours.index.tolist() == theirs.index.tolist()
    assert np.array_equal((1000 * ours).round(), (1000 * theirs).round())
