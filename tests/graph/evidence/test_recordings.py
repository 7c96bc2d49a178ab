"""When recordings begin and end, of jobs whose answer is obvious."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.evidence.recordings import hosts_of, recordings_of, uneven_recordings
from htagraph.trace.columns import Trace
from tests.host_jobs import host_job
from tests.strategies import Json, op, step


def steps(first: int, last: int, begin: float = 0.0) -> list[Json]:
    """Return steps of 20 ms, and work in each."""
    made: list[Json] = []
    for number in range(first, last + 1):
        at = begin + 20_000 * number
        made += [step(number, at, 19_000), op("aten::mm", at + 10, 18_000)]
    return made


def told(job: dict[int, list[Json]]) -> list[tuple[str, int]]:
    return [(issue.what, issue.rank) for issue in host_job(job).issues if issue.what.startswith("recording_")]


def test_what_each_recording_covers() -> None:
    graph = host_job({0: steps(2, 4), 1: steps(3, 4, begin=500.0)})
    spans = recordings_of(graph.activities, graph.time)
    assert spans.rank.tolist() == [0, 1]
    assert ((spans.begin - graph.origin_ns) / 1000).tolist() == [0.0, 20_500.0]
    assert ((spans.end - graph.origin_ns) / 1000).tolist() == [59_000.0, 59_500.0]
    assert spans.first_step.tolist() == [2, 3]
    assert spans.last_step.tolist() == [4, 4]
    assert spans.usual_ns == 1_000_000, "a twentieth of a step is less than the floor"


def test_a_recording_that_begins_later_is_reported_as_that() -> None:
    graph = host_job({0: steps(2, 5), 1: steps(4, 5), 2: steps(2, 5)})
    issues = [issue for issue in graph.issues if issue.what == "recording_begins_late"]
    assert [issue.rank for issue in issues] == [1]
    assert "rank 1's recording starts 40 ms after rank 0's (its first step is 4, there 2)" in issues[0].detail


@pytest.mark.parametrize(("begin", "reported"), [(900.0, False), (1_100.0, True)])
def test_small_differences_are_usual(begin: float, *, reported: bool) -> None:
    assert (("recording_begins_late", 1) in told({0: steps(2, 5), 1: steps(2, 5, begin)})) == reported


@pytest.mark.parametrize(("last", "reported"), [(5, False), (4, True)])
def test_a_recording_that_ends_earlier_is_reported_from_half_a_step(last: int, *, reported: bool) -> None:
    assert (("recording_ends_early", 1) in told({0: steps(2, 5), 1: steps(2, last)})) == reported


def test_one_recording_has_nothing_to_be_compared_with() -> None:
    graph = host_job({0: steps(2, 3)})
    assert uneven_recordings(graph.activities, graph.time, {}) == ()
    none = recordings_of(graph.activities, np.zeros(2 * len(graph.activities), np.int64))
    assert none.rank.tolist() == [0]


def traces(**changes: Any) -> dict[int, Trace]:
    """Return the ranks of the demo with other facts."""
    return {
        rank: replace(trace, facts=replace(trace.facts, **changes))
        for rank, trace in hg.load("data/demo").traces.items()
    }


def test_ranks_with_one_host_name_are_of_one_host() -> None:
    known = traces()
    known[2] = replace(known[2], facts=replace(known[2].facts, host="other"))
    hosts = hosts_of(known)
    assert hosts[0] == hosts[1] == hosts[3] != hosts[2]


def test_without_names_a_shared_table_of_devices_tells() -> None:
    nameless = traces(host="")
    assert len(set(hosts_of(nameless).values())) == 1
    assert set(hosts_of(nameless)) == {0, 1, 2, 3}
    nameless[1] = replace(nameless[1], lanes=nameless[0].lanes)  # the same device, hence another host
    assert hosts_of(nameless) == {}


@pytest.mark.parametrize("devices", [[], None])
def test_without_names_and_devices_nothing_is_known(devices: list[object] | None) -> None:
    table = hg.load("data/demo").traces[0].facts.devices[:2] if devices is None else ()
    assert hosts_of(traces(host="", devices=table)) == {}
