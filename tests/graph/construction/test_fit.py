"""Nominal edges are fitted to the recorded times: see also the tests of each rule."""

from __future__ import annotations

from hypothesis import given, settings

from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load


@given(jobs())
@settings(max_examples=20)
def test_no_lag_is_longer_than_observed(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    observed = graph.time[graph.edges.target] - graph.time[graph.edges.source]
    assert (graph.edges.lag <= observed).all()


def test_work_before_its_launch_is_reported_for_each_rank_by_the_worst() -> None:
    early = [launch(10, 1, 1), kernel(COMPUTE, 8, 1, 1), launch(20, 1, 2), kernel(COMPUTE, 15, 1, 2)]
    graph = load({0: early[:2], 1: [launch(0, 1, 1), kernel(COMPUTE, 3, 1, 1)], 2: early})
    found = [issue for issue in graph.issues if issue.what == "negative_launch_latency"]
    assert [(issue.rank, issue.count) for issue in found] == [(0, 1), (2, 2)]
    assert ["by up to 2.0 µs" in found[0].detail, "by up to 5.0 µs" in found[1].detail] == [True, True]
