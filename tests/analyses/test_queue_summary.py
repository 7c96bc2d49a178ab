from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests.strategies import COMPUTE, Job, jobs, kernel, launch, load


def test_statistics_are_over_changes_and_over_time() -> None:
    events = [launch(0, 1, 1), kernel(COMPUTE, 5, 5, 1), launch(2, 1, 2), kernel(COMPUTE, 10, 10, 2)]
    assert hg.queue_summary(load(events), full=2).to_dict("records") == [
        {"rank": 0, "device": 0, "stream": 7, "count": 4, "mean": 1.0, "std": pytest.approx(0.816496580927726),
         "min": 0.0, "p25": 0.75, "median": 1.0, "p75": 1.25, "max": 2.0, "mean_over_time": pytest.approx(1.3),
         "full_us": 3.0, "full_percent": pytest.approx(15.0)}
    ]  # fmt: skip


def test_every_stream_that_was_full_is_told() -> None:
    events = [each for i in (1, 2) for each in (launch(i, 1, i), kernel(COMPUTE, 9, 1, i, stream=i))]
    assert hg.queue_summary(load(events), full=1)["full_us"].tolist() == [8.0, 7.0]


@given(jobs())
@settings(deadline=None, max_examples=30)
def test_time_weighted_by_length_is_the_waiting_of_all_works(job: Job) -> None:
    graph = load(job)
    acts, table = graph.activities, hg.queue_summary(graph, full=1)
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
        hg.queue_summary(load([]), full=full)
