from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import blocked_since, worked_until
from htagraph.graph.dependency_graph import DependencyGraph
from tests.host_jobs import host_job, transfer
from tests.strategies import COMPUTE, Json, annotation, jobs, kernel, load, op


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_activities_of_a_rank_lie_together(job: dict[int, list[Json]]) -> None:
    acts = load(job).activities
    for rank in range(11):
        rows = np.arange(len(acts))[acts.of_rank(rank)]
        assert rows.tolist() == np.flatnonzero(acts.rank == rank).tolist()


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_each_stream_has_its_work_in_the_order_of_time(job: dict[int, list[Json]]) -> None:
    acts = load(job).activities
    streams = [stream.tolist() for stream in acts.by_stream()]
    assert sorted(row for stream in streams for row in stream) == np.flatnonzero(acts.on_device).tolist()
    assert all(stream == sorted(stream, key=lambda row: (acts.start[row], row)) for stream in streams)
    assert [sorted({int(acts.lane[row]) for row in stream}) for stream in streams] == [
        [lane] for lane in sorted(set(acts.lane[acts.on_device].tolist()))
    ]


def test_without_device_work_there_is_no_stream() -> None:
    assert load([op("a", 0, 1)]).activities.by_stream() == []
    assert [each.tolist() for each in load([kernel(COMPUTE, 0, 1)]).activities.by_stream()] == [[0]]


BESIDE = [
    annotation("ProfilerStep#1", 0, 100), *transfer("send", 1, 10, 80), op("first", 12, 30), op("second", 50, 20),
    op("inner", 52, 3), op("last", 85, 5),
]  # fmt: skip


def communication(graph: DependencyGraph) -> np.ndarray:
    return np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)


def since(graph: DependencyGraph) -> list[float]:
    acts = graph.activities
    return ((blocked_since(acts, communication(graph)) - acts.start.min()) / 1000).tolist()


def test_operators_beside_a_send_are_not_inside_it() -> None:
    graph = host_job({0: BESIDE})
    names = [graph.names[name] for name in graph.activities.name]
    around = {name: graph.tree.parent[row] for row, name in enumerate(names)}
    step = names.index("ProfilerStep#1")
    assert (around["first"], around["second"], around["gloo:send"]) == (step, step, step)
    assert names[around["inner"]] == "second"


def test_a_thread_waits_for_a_send_only_after_what_it_ran_beside_it() -> None:
    graph = host_job({0: BESIDE})
    assert since(graph) == [70]
    (row,) = hg.temporal_breakdown(graph).itertuples()
    assert row.exposed_communication_us == pytest.approx(10, abs=1e-6)
    assert row.computation_us == pytest.approx(30 + 20 + 5 + 0.15, abs=1e-6)
    assert hg.overlap(graph)["beside_us"].tolist() == [pytest.approx(60, abs=1e-6)]


def test_of_several_that_are_waited_for_in_turn_each_has_its_own_wait() -> None:
    events = [*transfer("recv", 1, 10, 80), *transfer("recv", 2, 20, 95), op("work", 30, 20)]
    graph = host_job({0: events})
    first, second = since(graph)
    assert second - first == pytest.approx(30)


def test_what_ends_while_an_operator_runs_was_not_waited_for() -> None:
    graph = host_job({0: [*transfer("recv", 1, 10, 80), op("work", 30, 100)]})
    assert since(graph) == [80 - 9.9]


def test_what_a_thread_of_the_backend_runs_is_part_of_its_collective() -> None:
    graph = host_job({0: [op("c10d::allreduce_", 0, 2), *(
        {**each, "tid": 7} for each in (op("gloo:all_reduce", 5, 50), op("aten::copy_", 10, 5))
    )]})  # fmt: skip
    assert worked_until(graph.activities, communication(graph)).tolist() == [
        graph.activities.start[communication(graph)[0]]
    ]


@st.composite
def threads(draw: st.DrawFn) -> list[Json]:
    """Return operators one after another, and receives that began between them and end at any moment."""
    at, events = 1, []
    for _ in range(draw(st.integers(1, 6))):
        lasts = draw(st.integers(1, 9))
        if draw(st.booleans()):
            events += transfer("recv", 1, at + 1, at + 2 + draw(st.integers(1, 30)))
        else:
            events.append(op("work", at + 2, lasts))
        at += lasts + 5
    return events


@given(threads())
@settings(max_examples=25)
def test_the_time_in_communication_is_what_a_search_through_all_moments_finds(events: list[Json]) -> None:
    graph = host_job({0: events})
    acts = graph.activities
    rows = communication(graph)
    begin = blocked_since(acts, rows) - acts.origin
    of_op = [(each["ts"], each["ts"] + each["dur"]) for each in events if each["cat"] == "cpu_op"]
    base = min(each["ts"] for each in events)
    for row, found in zip(rows, begin.tolist(), strict=True):
        start, end = (acts.start[row] - acts.origin) / 1000 + base, (acts.end[row] - acts.origin) / 1000 + base
        others = [(acts.end[each] - acts.origin) / 1000 + base for each in rows]
        begun = [stop for first, stop in of_op if start < first < end]
        expected = min(end, max([start, *begun, *(each for each in others if start < each < end)]))
        assert found / 1000 == pytest.approx(expected - base, abs=2e-3)
