"""Pauses of streams and devices, and why: by hand, by walking along each stream, and as idle time of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.graph.measures.pauses import CAUSES
from tests import oracles
from tests.reach import DATASETS, graph_of, label
from tests.strategies import COMPUTE, Job, Json, jobs, kernel, launch, load, traces


@given(traces())
@settings(max_examples=20)
def test_the_binding_edge_is_the_one_that_allowed_the_work_last(events: list[Json]) -> None:
    graph = load(events)
    for vertex in range(graph.vertex_count):
        edges, binding = oracles.allowed(graph, vertex), graph.binding[vertex]
        last = [kind for moment, kind in edges if moment == max(edges)[0]]
        expected = "launch" if "launch" in last else next(iter(last), None)
        assert (EdgeKind(graph.edges.kind[binding]).label if binding >= 0 else None) == expected


def test_of_equals_the_launch_binds() -> None:
    graph = load([launch(5, 1, 1), kernel(COMPUTE, 5, 3, 1), launch(8, 1, 2), kernel(COMPUTE, 8, 3, 2)])
    assert EdgeKind(graph.edges.kind[graph.binding[2 * 3]]) == EdgeKind.LAUNCH


@pytest.mark.parametrize(
    ("launch_at", "launch_us", "pause_us", "cause"),
    [
        (880, 2, 900, "host_wait"),  # launched after the stream fell idle, and started soon after
        (40, 2, 900, "other"),  # launched late, but most of the pause came after that: it waited for something else
        (0, 2, 29, "kernel_wait"),
        (0, 2, 30, "other"),
        (1, 800, 900, "host_wait"),  # the call began early, but took most of the pause
        (1, 200, 900, "other"),
    ],
)
def test_a_pause_has_one_cause(launch_at: float, launch_us: float, pause_us: float, cause: str) -> None:
    first = kernel(COMPUTE, 5, 5, 1)
    second = kernel(COMPUTE, 10 + pause_us, 5, 2)
    graph = load([launch(0, 1, 1), first, launch(launch_at, launch_us, 2), second])
    for pauses in (graph.pauses, graph.device_pauses):
        assert (pauses.after.tolist(), pauses.length.tolist()) == ([3], [1000 * pause_us])
        assert [CAUSES[code] for code in pauses.causes()] == [cause]


def sums_agree(graph: DependencyGraph) -> None:
    """Assert that pauses of devices sum to the idle time of each rank and cause."""
    pauses, table = graph.device_pauses, hg.idle_breakdown(graph, by="rank")
    for row in table.to_dict("records"):
        of_cause = pauses.length[
            (pauses.places[pauses.place, 0] == row["rank"]) & (pauses.causes() == CAUSES.index(row["cause"]))
        ]
        assert of_cause.sum() / 1000 == pytest.approx(row["idle_us"])
        assert (of_cause > 0).sum() == row["count"]


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_pauses_sum_to_the_idle_time_of_a_recorded_job(path: Path) -> None:
    sums_agree(graph_of(path))


@pytest.mark.slow
@given(jobs())
def test_pauses_sum_to_the_idle_time_of_any_job(job: dict[int, list[Json]]) -> None:
    sums_agree(load(job))


def test_a_stream_that_pauses_beside_another_is_no_pause_of_the_device() -> None:
    graph = load([
        launch(0, 1, 1), kernel(COMPUTE, 2, 100, 1), launch(3, 1, 2), kernel("b", 5, 1, 2, stream=8), launch(6, 1, 3),
        kernel("b", 90, 30, 3, stream=8), launch(140, 5, 4), kernel("c", 150, 5, 4),
    ])  # fmt: skip
    pauses = graph.device_pauses
    (row,) = pauses.length.nonzero()[0].tolist()
    found = (pauses.begin[row] - graph.origin_ns, pauses.length[row], CAUSES[pauses.causes()[row]])
    assert found == (120_000, 30_000, "host_wait")
    name = graph.activities.name
    assert [graph.names[name[each[row]]] for each in (pauses.last, pauses.after)] == ["b", "c"]


def test_pauses_come_by_device_and_stream() -> None:
    pauses = load([kernel("k", 10 * i, 5, stream=stream) for i in range(2) for stream in (20, 7)]).pauses
    assert pauses.places[pauses.place, 2].tolist() == [7, 20]
    assert pauses.length.tolist() == [5000, 5000]
    assert pauses.window.tolist() == [15_000, 15_000]


def test_a_stream_is_free_when_all_its_earlier_work_has_ended() -> None:
    graph = load([launch(0, 1, 3), kernel("long", 0, 30), kernel("short", 5, 5), kernel("next", 32, 5, 3)])
    pauses = graph.pauses
    named = [[graph.names[graph.activities.name[row]] for row in each] for each in (pauses.before, pauses.last)]
    assert named == [["long", "short"], ["long", "long"]]
    assert pauses.length.tolist() == [0, 2000]
    assert (pauses.free - graph.activities.start[pauses.before[0]]).tolist() == [30_000, 30_000]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_pauses_are_those_of_walking_along_each_stream(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    wanted = []
    streams: dict[tuple[int, int, int], list[int]] = {}
    for row in sorted(range(len(acts)), key=lambda row: (acts.start[row], row)):
        if acts.on_device[row]:
            lane = graph.lanes[acts.lane[row]]
            streams.setdefault((lane.rank, lane.device, lane.stream), []).append(row)
    for place in sorted(streams):
        free = 0
        for i, row in enumerate(streams[place]):
            if i:
                wanted.append((*place, streams[place][i - 1], row, free, max(0, int(acts.start[row]) - free)))
            free = max(free, int(acts.end[row]))
    pauses = graph.pauses
    columns = (*pauses.places[pauses.place].T, pauses.before, pauses.after, pauses.free, pauses.length)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == wanted
