from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, SelectionError
from htagraph.analyses.critical_path import critical_path
from htagraph.queries.paths import CATEGORIES, CriticalPath
from tests.reach import JOBS, graph_of, label
from tests.strategies import COMMUNICATE, COMPUTE, Frames, Job, Json, frames, jobs, kernel, launch, load, op, step


def check(path: CriticalPath) -> None:
    """Assert what holds of every critical path."""
    graph, parts = path.graph, path.segments
    assert parts.length.sum() == path.makespan_ns == path.window[1] - path.window[0]
    assert (parts.length > 0).all()
    assert (parts.start + parts.length == np.append(parts.start[1:], path.window[1])[: len(parts)]).all()
    assert len(parts) == 0 or parts.start[0] == path.window[0]
    source, target = graph.edges.source[path.edges], graph.edges.target[path.edges]
    assert (source == path.vertices[:-1]).all()
    assert (target == path.vertices[1:]).all()
    assert (graph.time[source] + graph.edges.lag[path.edges] + graph.gap[target] == graph.time[target]).all()
    frame, summary = path.to_frame(), path.summary()
    assert len(frame) == len(parts)
    assert round(frame["duration_us"].sum() * 1000) == path.makespan_ns
    for group, table in summary.groupby("group"):
        assert round(table["time_us"].sum() * 1000) == path.makespan_ns, group
        assert table["count"].sum() == len(parts)
    for group in ("rank", "category"):
        expected = frame.groupby(frame[group].astype(str))["duration_us"].sum()
        found = summary[summary["group"] == group].set_index("key")["time_us"]
        pd.testing.assert_series_equal(
            found.sort_index(), expected.sort_index(), check_names=False, check_index_type=False
        )
    assert set(frame["category"]) <= set(CATEGORIES)


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_segments_tile_the_window(job: Job) -> None:
    graph = load(job)
    path = critical_path(graph)
    check(path)
    awake = graph.time.reshape(-1, 2)[graph.awake]
    assert path.window == ((int(awake.min()), int(awake.max())) if graph.vertex_count else (0, 0))
    for chosen in graph.steps:
        check(critical_path(graph, steps=chosen))
    for rank in np.unique(graph.activities.rank[: graph.activities.ranked]).tolist():
        mine = graph.activities.of_rank(rank)
        own = critical_path(graph, ranks=rank)
        check(own)
        assert own.window[1] == graph.time.reshape(-1, 2)[mine][graph.awake[mine]].max()


@pytest.mark.slow
@given(frames())
@settings(max_examples=50)
def test_the_path_is_a_longest_one_of_networkx(made: Frames) -> None:
    graph = made.graph
    path = critical_path(graph)
    check(path)
    origin = int(graph.time.min())
    weighted = nx.DiGraph()
    for source, target, lag in graph.to_networkx().edges(data="lag_ns"):
        weighted.add_edge(source, target, weight=lag + int(graph.gap[target]))
    for vertex in range(graph.vertex_count):
        if not list(weighted.predecessors(vertex)):
            weighted.add_edge("head", vertex, weight=int(graph.time[vertex]) - origin)
    longest = nx.dag_longest_path_length.orig_func(weighted)
    assert longest == path.makespan_ns
    head = int(graph.time[path.vertices[0]]) - origin
    lags = graph.edges.lag[path.edges] + graph.gap[path.vertices[1:]]
    assert head + lags.sum() == longest


@pytest.mark.slow
@pytest.mark.parametrize("source", JOBS, ids=label)
def test_real_traces_tile_their_windows(source: Path) -> None:
    graph = graph_of(source)
    check(critical_path(graph))
    for chosen in graph.steps[:2]:
        path = critical_path(graph, steps=chosen)
        check(path)
        times = hg.step_times(graph)
        times = times[times["step"] == chosen]
        assert path.makespan_ns == round((times["end_us"].max() - times["start_us"].min()) * 1000)


def test_a_kernel_bound_job_waits_for_its_kernels_and_says_for_which_operator() -> None:
    events = [
        step(1, 0, 20), op("aten::mm", 2, 6), launch(4, 2, 1), op("aten::mm", 10, 6), launch(12, 2, 2),
        kernel(COMPUTE, 5, 50, 1), kernel(COMPUTE, 55, 40, 2),
    ]  # fmt: skip
    graph = load(events)
    path = critical_path(graph, steps=1)
    table = path.to_frame()
    kernels = table[table["category"] == "computation"]
    assert kernels["duration_us"].tolist() == [50, 40]
    assert kernels["operator"].tolist() == ["aten::mm"] * 2
    assert kernels["lane"].tolist() == ["stream 7"] * 2
    assert path.makespan_ns == 95_000
    rows = path.summary()[["group", "key", "time_us", "count"]].to_numpy().tolist()
    assert ["kernel", COMPUTE, 90, 2] in rows
    assert ["operator", "aten::mm", 93, 4] in rows, "own time, latency, two kernels"
    assert set(kernels["activity"]) <= set(path.activities)


def test_a_host_bound_job_waits_for_python() -> None:
    events = [op("aten::mm", 0, 10), launch(5, 2, 1), kernel(COMPUTE, 8, 3, 1), op("aten::add", 60, 10)]
    table = critical_path(load(events)).to_frame()
    untraced = table[table["gap"] == "host_untraced"]
    assert untraced["duration_us"].tolist() == [50]
    assert untraced["category"].tolist() == ["host"]
    assert untraced["before"].tolist() == ["aten::add"]
    assert untraced["operator"].tolist() == [""]


@pytest.mark.slow
def test_the_path_hops_to_the_rank_that_was_waited_for() -> None:
    activities = pd.DataFrame(
        {"rank": [0, 1, 1], "duration_ns": [9_000, 2_000, 1_000], "name": ["slow", "fast", "after"]}
    )
    dependencies = pd.DataFrame({"source": [0, 1], "target": [2, 2], "lag_ns": [500, 0]})
    path = critical_path(DependencyGraph.from_frames(activities, dependencies))
    assert path.to_frame()[["name", "duration_us", "rank", "hop", "category"]].to_numpy().tolist() == [
        ["slow", 9.0, 0, False, "host"], ["after", 0.5, 1, True, "waiting"], ["after", 1.0, 1, False, "host"],
    ]  # fmt: skip
    assert path.hops().to_dict("records") == [
        {"at_us": 9.0, "from_rank": 0, "to_rank": 1, "edge": "user", "from_activity": 0, "to_activity": 2,
         "name": "after", "waited_us": 0.0},
    ]  # fmt: skip
    ways = path.near()
    assert ways[["slack_us", "work_us", "rank", "edge", "leaves", "returns", "main"]].to_numpy().tolist() == [
        [7.5, 2.0, 1, "user", -1, 2, "fast 2.0 µs"]
    ]


def members(*before: int) -> list[Json]:
    """Return a rank that enqueues everything at once: computation of given lengths, µs, each with a collective after.

    The collectives end 10 µs after the slower of two ranks that compute for 30 and 5 µs in turn.
    """
    made = []
    for i, computing in enumerate(before):
        arrival = 10 + 40 * i + computing
        made += [launch(2 * i, 1, 2 * i + 1), launch(2 * i + 1, 1, 2 * i + 2)]
        made += [kernel(COMPUTE, 10 + 40 * i, computing, 2 * i + 1)]
        made += [kernel(COMMUNICATE, arrival, 50 + 40 * i - arrival, 2 * i + 2)]
    return made


def test_at_a_collective_the_path_hops_to_the_rank_that_came_last() -> None:
    path = critical_path(load({0: members(30, 5, 30, 5), 1: members(5, 30, 5, 30)}))
    check(path)
    table = path.to_frame()
    computing = table[table["category"] == "computation"]
    assert computing[["rank", "duration_us"]].to_numpy().tolist() == [[0, 30], [1, 30], [0, 30], [1, 30]]
    transfers = table[table["category"] == "communication"]
    assert transfers["duration_us"].tolist() == [10, 10, 10, 10]
    assert transfers["edge"].tolist() == ["collective"] * 4
    hops = path.hops()
    assert hops[["from_rank", "to_rank", "at_us"]].to_numpy().tolist() == [
        [0, 1, 40], [1, 0, 80], [0, 1, 120], [1, 0, 160],  # of ranks that end together the first is looked at
    ]  # fmt: skip
    assert set(zip(hops["edge"], hops["name"], hops["waited_us"], strict=True)) == {("collective", COMMUNICATE, 25.0)}
    assert table["hop"].sum() == len(hops)


def test_of_two_ways_that_run_together_the_closer_counts() -> None:
    durations = {"start": 1, "long": 100, "side": 50, "near": 30, "far": 10, "last": 1}
    ids = list(durations)
    activities = pd.DataFrame({"duration_ns": [1000 * durations[i] for i in ids], "name": ids}, index=ids)
    pairs = [("start", "long"), ("start", "side"), ("side", "near"), ("side", "far"),
             ("long", "last"), ("near", "last"), ("far", "last")]  # fmt: skip
    graph = DependencyGraph.from_frames(activities, pd.DataFrame(pairs, columns=["source", "target"]))
    ways = critical_path(graph).near()
    assert ways[["slack_us", "start_us", "end_us", "work_us", "main"]].to_numpy().tolist() == [
        [20.0, 1.0, 101.0, 80.0, "side 50.0 µs, near 30.0 µs"]
    ]


def test_steps_of_frames_go_from_their_first_start_to_their_last_end() -> None:
    activities = pd.DataFrame({"duration_ns": [5_000, 7_000, 9_000], "step": [0, 1, 1], "rank": [0, 0, 1]})
    graph = DependencyGraph.from_frames(activities, pd.DataFrame({"source": [0, 0], "target": [1, 2]}))
    assert critical_path(graph, steps=0).makespan_ns == 5_000
    path = critical_path(graph, steps=1)
    assert path.to_frame()[["activity", "start_us", "duration_us"]].to_numpy().tolist() == [[2, 5, 9]]
    assert critical_path(graph, steps=1, ranks=0).makespan_ns == 7_000


def test_an_empty_graph_has_an_empty_path() -> None:
    path = critical_path(load([]))
    assert path.makespan_ns == 0
    assert path.to_frame().empty
    assert path.summary().empty
    assert path.hops().empty
    assert path.near().empty


def test_one_kernel_is_its_own_path() -> None:
    path = critical_path(load([kernel(COMPUTE, 5, 3, 1)]))
    assert path.to_frame()[["name", "duration_us", "category"]].to_numpy().tolist() == [[COMPUTE, 3.0, "computation"]]


def test_a_window_that_does_not_exist_is_refused() -> None:
    graph = load({0: [step(1, 0, 5)], 1: [step(2, 0, 5)]})
    with pytest.raises(SelectionError, match="step 7"):
        critical_path(graph, steps=7)
    with pytest.raises(SelectionError, match="rank 7"):
        critical_path(graph, ranks=7)
    with pytest.raises(SelectionError, match="no step 2 on rank 0"):
        critical_path(graph, steps=2, ranks=0)
