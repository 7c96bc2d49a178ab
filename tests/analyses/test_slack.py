from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from htagraph import ActivityKind, DependencyGraph, EdgeKind
from htagraph.analyses.critical_path import critical_path
from htagraph.analyses.slack import slack
from htagraph.core import traverse
from tests.reach import DATASETS, graph_of
from tests.strategies import COMPUTE, Frames, Job, Json, frames, jobs, kernel, launch, load, op, traces


def ends(graph: DependencyGraph, *, without: int = -1, edge: int = -1, vertex: int = -1, later: int = 0) -> list[int]:
    """Return every moment again, vertex by vertex: without an activity's time, an edge, or with one vertex later."""
    edges = graph.edges
    columns = zip(
        *(each.tolist() for each in (edges.source, edges.target, edges.lag, edges.kind, edges.activity)), strict=True
    )
    entering: dict[int, list[tuple[int, int]]] = {}
    for e, (source, target, lag, kind, owner) in enumerate(columns):
        zeroed = without >= 0 and owner == without and kind != EdgeKind.HOST_ORDER
        entering.setdefault(target, []).append((source, -(10**12) if e == edge else 0 if zeroed else lag))
    time: dict[int, int] = {}

    def moment(v: int) -> int:
        if v not in time:
            allowed = [moment(source) + lag for source, lag in entering.get(v, ())]
            base = max(allowed) + int(graph.gap[v]) if allowed else int(graph.time[v])
            time[v] = base + (later if v == vertex else 0)
        return time[v]

    return [moment(v) for v in range(graph.vertex_count)]


def check(graph: DependencyGraph) -> None:
    table = slack(graph)
    last = int(graph.time.max())
    for number, row in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        total, end = round(row["slack_us"] * 1000), 2 * number + 1
        assert max(ends(graph, vertex=end, later=total)) == last
        assert max(ends(graph, vertex=end, later=total + 1)) == last + 1
        free = round(row["free_slack_us"] * 1000)
        assert 0 <= free <= total
        moved = ends(graph, vertex=end, later=free)
        assert [v for v in range(graph.vertex_count) if moved[v] != graph.time[v]] in ([], [end])
        if free < total:
            assert sum(np.array(ends(graph, vertex=end, later=free + 1)) != graph.time) > 1
        assert row["drag_exact"]
        assert row["drag_us"] * 1000 == pytest.approx(last - max(ends(graph, without=number)))
        assert row["critical"] == (row["slack_us"] == 0)


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_slack_and_drag_are_those_of_rescheduling(made: Frames) -> None:
    check(made.graph)


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_slack_and_drag_of_a_trace_are_those_of_rescheduling(events: list[Json]) -> None:
    graph = load(events)
    if graph.vertex_count:
        check(graph)


@pytest.mark.slow
@given(frames(max_size=9))
@settings(max_examples=100)
def test_the_longest_path_without_an_edge_is_that_of_rescheduling(made: Frames) -> None:
    graph = made.graph
    path, edges = critical_path(graph), graph.edges
    vertices = traverse.walk_back(graph.binding, edges.source, graph.time, int(path.vertices[-1]), -(10**15))
    end, order = int(graph.time.max()), graph.topological_order
    late = traverse.latest(order, graph.out_offsets, edges.target, edges.lag, graph.gap, end)
    into = graph.in_edges
    reaching = traverse.last_on_path(order, graph.in_offsets, edges.source[into], vertices)
    best = traverse.avoiding(
        vertices, reaching, graph.out_offsets, edges.target, edges.lag, graph.gap, graph.time, late, end
    )
    assert best.tolist() == [max(ends(graph, edge=int(graph.binding[v]))) for v in vertices[1:]]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_what_is_not_exact_is_a_lower_bound(job: Job) -> None:
    graph = load(job)
    bound, table = slack(graph, exact=0), slack(graph)
    assert (bound["drag_us"] <= table["drag_us"]).all()
    assert (bound["drag_us"] >= 0).all()
    assert (bound["drag_us"] == table["drag_us"])[bound["drag_exact"]].all()
    assert table["drag_exact"].all()


def test_a_kernel_beside_another_has_the_difference_as_slack() -> None:
    graph = load([
        op("aten::mm", 0, 10), launch(1, 2, 1), launch(4, 2, 2),
        kernel(COMPUTE, 5, 30, 1, stream=7), kernel(COMPUTE, 6, 50, 2, stream=20),
    ])  # fmt: skip
    table = slack(graph)
    kernels = table[table["kind"] == "computation"]
    assert kernels["slack_us"].tolist() == [21.0, 0.0]
    assert kernels["free_slack_us"].tolist() == [21.0, 0.0]
    assert kernels["drag_us"].tolist() == [0.0, 21.0]
    assert kernels["critical"].tolist() == [False, True]
    near = slack(graph, epsilon_us=21)
    assert near.loc[kernels.index, "critical"].tolist() == [True, True]


def test_an_operator_in_slices_is_evaluated_as_a_whole() -> None:
    graph = load([op("aten::mm", 0, 30), launch(10, 5, 1), op("aten::add", 30, 10)])
    whole, bound = slack(graph), slack(graph, exact=0)
    assert whole.loc[0, "drag_us"] == 25
    assert bound.loc[0, "drag_us"] == 15
    assert not bound.loc[0, "drag_exact"]


@pytest.mark.parametrize("source", DATASETS, ids=lambda path: path.name)
def test_work_on_the_critical_path_is_critical(source: Path) -> None:
    graph = graph_of(source)
    table, path = slack(graph), critical_path(graph)
    lasting = table.loc[table.index.isin(path.activities.activities)]
    assert len(lasting) > 10
    ended = set(path.vertices.tolist())
    passed = [row for row in lasting.index if 2 * row + 1 in ended]
    assert table.loc[passed, "critical"].all()
    assert (table["slack_us"] >= 0).all()
    assert (table["drag_us"] >= 0).all()
    assert (table["drag_us"] <= table["duration_us"]).all()
    assert (table.loc[~table.index.isin(path.activities.activities), "drag_us"] == 0).all()


def test_only_activities_of_ranks_are_listed() -> None:
    graph = graph_of(DATASETS[0])
    rows = slack(graph).index
    added = (ActivityKind.BOUNDARY, ActivityKind.JOIN)
    assert not np.isin(graph.activities.kind[rows], added).any()
    assert set(rows) >= set(graph.select(kind="kernel").activities)
