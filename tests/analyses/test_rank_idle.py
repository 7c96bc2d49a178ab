from __future__ import annotations

import numpy as np
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op


def test_a_stream_that_waits_while_another_works_is_not_idle() -> None:
    events = [kernel(COMPUTE, 0, 5, stream=7), kernel(COMPUTE, 3, 30, stream=20), kernel(COMPUTE, 40, 5, stream=7)]
    assert hg.rank_idle(load(events))["idle_us"].sum() == 7


def test_the_cause_is_that_of_the_first_work_behind_the_pause() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel(COMPUTE, 105, 5, 2, stream=20)]
    assert hg.rank_idle(load(events)).to_dict("records") == [
        {"rank": 0, "cause": "host_wait", "idle_us": 95.0, "count": 1, "share_percent": 100 * 95 / 105},
        {"rank": 0, "cause": "kernel_wait", "idle_us": 0.0, "count": 0, "share_percent": 0.0},
        {"rank": 0, "cause": "other", "idle_us": 0.0, "count": 0, "share_percent": 0.0},
    ]


def test_a_rank_without_device_work_has_no_rows() -> None:
    assert set(hg.rank_idle(load({0: [op("a", 0, 5)], 1: [kernel(COMPUTE, 0, 5)]}))["rank"]) == {1}


@given(jobs())
@settings(deadline=None, max_examples=40)
def test_the_causes_are_what_the_definition_gives(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    ours = {(rank, -1, cause): round(1000 * us) for rank, cause, us, *_ in hg.rank_idle(graph).itertuples(index=False)}
    assert {key: ns for key, ns in ours.items() if ns} == dict(oracles.idle(graph, "rank"))


@given(jobs())
@settings(deadline=None, max_examples=40)
def test_a_ranks_causes_sum_to_the_idle_time_of_the_temporal_breakdown(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    ours = hg.rank_idle(graph).groupby("rank")["idle_us"].sum()
    table = hg.temporal_breakdown(graph).set_index("rank")
    theirs = table.loc[table["executor"] == "device", "idle_us"]
    assert ours.index.tolist() == theirs.index.tolist()
    assert np.array_equal((1000 * ours).round(), (1000 * theirs).round())
