"""What every change obeys, on traces, on DAGs of any shape and on collectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.scenario import Scenario
from tests.reach import DATASETS, graph_of, label
from tests.strategies import frames, jobs, load
from tests.whatif.changes.made import jobs as pieces_of
from tests.whatif.changes.made import made

RELAXED = settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much])


def graphs() -> st.SearchStrategy[DependencyGraph]:
    """Return graphs of traces, of DAGs that a user brings, and of ranks that meet in collectives."""
    return st.one_of(jobs(tidy=True).map(load), frames().map(lambda made: made.graph), pieces_of(3).map(made))


def try_to(change: Callable[[], Scenario]) -> Scenario:
    """Return the scenario, and pass over examples that have nothing of what is changed."""
    try:
        return change()
    except SelectionError:
        assume(False)  # noqa: FBT003
        raise


FASTER: list[tuple[str, dict[str, Any]]] = [
    ("scale", {"factor": 0.5}),
    ("scale", {"factor": 0.0, "kind": "host"}),
    ("scale", {"factor": 0.3, "kind": "device"}),
    ("set_duration", {"ns": 0}),
    ("scale_network", {"factor": 0.25}),
    ("no_launch_overhead", {}),
    ("infinite_host", {}),
    ("infinite_gpu", {}),
    ("remove_sync", {}),
    ("remove", {"kind": "device"}),
    ("remove", {"kind": "host"}),
]
faster = pytest.mark.parametrize(("method", "options"), FASTER, ids=lambda value: str(value))


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_identity_changes_nothing_in_a_recorded_job(path: Any) -> None:
    graph = graph_of(path)
    outcome = hg.what_if(graph).run()
    assert np.array_equal(outcome.time, graph.time)
    assert (outcome.speedup, outcome.low, outcome.high) == (1.0, 1.0, 1.0)


@given(graphs())
@RELAXED
def test_the_identity_and_scaling_by_one_change_nothing(graph: DependencyGraph) -> None:
    assert np.array_equal(hg.what_if(graph).run().time, graph.time)
    assert np.array_equal(try_to(lambda: hg.what_if(graph).scale(factor=1.0)).run().time, graph.time)


@given(graphs(), st.floats(1.0, 5.0), st.sampled_from(["host", "device", None]))
@RELAXED
def test_slower_is_never_faster(graph: DependencyGraph, factor: float, kind: str | None) -> None:
    slower = try_to(lambda: hg.what_if(graph).scale(factor=factor, kind=kind)).run()
    assert (slower.time >= graph.time).all()
    much = try_to(lambda: hg.what_if(graph).scale(factor=factor + 1, kind=kind)).run()
    assert (much.time >= slower.time).all()


@faster
@given(graph=graphs())
@RELAXED
def test_less_work_is_never_slower(graph: DependencyGraph, method: str, options: dict[str, Any]) -> None:
    before = hg.what_if(graph)
    after = try_to(lambda: getattr(before, method)(**options)).run()
    assert (after.time <= graph.time).all()
    assert 0 <= after.makespan_ns <= after.baseline_ns


@faster
@given(graph=graphs())
@RELAXED
def test_a_change_made_twice_is_made_once(graph: DependencyGraph, method: str, options: dict[str, Any]) -> None:
    if 0 < options.get("factor", 0) < 1:
        options = options | {"factor": 0.0}
    once = try_to(lambda: getattr(hg.what_if(graph), method)(**options))
    assert np.array_equal(getattr(once, method)(**options).run().time, once.run().time)


@given(graphs(), st.floats(0, 4), st.floats(0, 4))
@RELAXED
def test_changes_of_different_weights_commute(graph: DependencyGraph, one: float, other: float) -> None:
    start = hg.what_if(graph)
    ab = try_to(lambda: start.scale(factor=one, kind="host").scale(factor=other, kind="device"))
    ba = start.scale(factor=other, kind="device").scale(factor=one, kind="host")
    assert np.array_equal(ab.run().time, ba.run().time)


@given(pieces_of(3), st.integers(0, 2), st.integers(0, 2))
@RELAXED
def test_changes_of_different_ranks_commute(pieces: Any, one: int, other: int) -> None:
    assume(one != other)
    start = hg.what_if(made(pieces))
    ab = start.scale(factor=3, rank=one, kind="device").scale(factor=0.5, rank=other, kind="device")
    ba = start.scale(factor=0.5, rank=other, kind="device").scale(factor=3, rank=one, kind="device")
    assert np.array_equal(ab.run().time, ba.run().time)


@given(st.one_of(jobs(tidy=True).map(load), pieces_of(3).map(made)), st.floats(0, 5))
@RELAXED
def test_ranks_that_a_change_does_not_reach_keep_their_times(graph: DependencyGraph, factor: float) -> None:
    alone = hg.what_if(graph).shared_link(on=False)  # where transfers share a link, a change reaches all of them
    outcome = try_to(lambda: alone.scale(factor=factor, rank=graph.ranks[-1])).run()
    state = outcome.state
    reached = set(graph.edges.target[state.lag != graph.edges.lag].tolist()) | set(
        np.flatnonzero(state.gap != graph.gap).tolist()
    )
    for vertex in graph.topological_order.tolist():
        if vertex in reached:
            reached |= set(graph.edges.target[graph.out_offsets[vertex] : graph.out_offsets[vertex + 1]].tolist())
    others = [vertex for vertex in range(graph.vertex_count) if vertex not in reached]
    assert np.array_equal(outcome.time[others], graph.time[others])
    changed = graph.activities.rank[graph.edges.activity[state.lag != graph.edges.lag]]
    assert set(changed.tolist()) <= {graph.ranks[-1]}


@given(graphs(), st.floats(0, 3))
@RELAXED
def test_the_predicted_graph_replays_to_itself(graph: DependencyGraph, factor: float) -> None:
    outcome = try_to(lambda: hg.what_if(graph).scale(factor=factor)).run()
    predicted = outcome.graph
    predicted.check()
    assert np.array_equal(predicted.time, outcome.time)
    assert np.array_equal(hg.what_if(predicted).run().time, outcome.time)


@given(jobs(tidy=True).map(load), st.floats(0, 3))
@RELAXED
def test_nothing_is_faster_than_what_its_lane_has_to_do(graph: DependencyGraph, factor: float) -> None:
    outcome = try_to(lambda: hg.what_if(graph).scale(factor=factor)).run()
    edges = graph.edges
    owned = edges.activity >= 0
    serial = owned & ~graph.activities.on_device[edges.activity]  # work of a stream may overlap, a thread's cannot
    lane = graph.activities.lane[edges.activity[serial]]
    busy = np.bincount(lane[lane >= 0], weights=outcome.state.lag[serial][lane >= 0])
    assert outcome.makespan_ns >= max(busy, default=0)


@given(graphs())
@RELAXED
def test_nothing_is_faster_than_any_path(graph: DependencyGraph) -> None:
    outcome = try_to(lambda: hg.what_if(graph).scale(factor=2.5, kind="device")).run()
    longest = np.zeros(graph.vertex_count, np.int64)
    for vertex in graph.topological_order.tolist():  # by hand: the heaviest path of lags that ends in each vertex
        for edge in graph.in_edges[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]]:
            longest[vertex] = max(longest[vertex], longest[graph.edges.source[edge]] + outcome.state.lag[edge])
    assert outcome.makespan_ns >= longest.max()


def _saved(graph: DependencyGraph, activity: int) -> int:
    """Return by how much the job ends earlier if one activity takes no time, by rebuilding its lags by hand."""
    lag = np.where(graph.edges.activity == activity, np.minimum(graph.edges.lag, 0), graph.edges.lag)
    time = graph.time.copy()
    for vertex in graph.topological_order.tolist():
        into = graph.in_edges[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]]
        if len(into):
            time[vertex] = max(time[graph.edges.source[edge]] + lag[edge] for edge in into) + graph.gap[vertex]
    return int(graph.time.max() - time.max())


@given(st.one_of(frames().map(lambda made: made.graph), pieces_of(2).map(made)), st.data())
@RELAXED
def test_zeroing_a_group_saves_at_least_its_largest_drag_and_at_most_its_work(
    graph: DependencyGraph, data: st.DataObject
) -> None:
    kind = ActivityKind(data.draw(st.sampled_from(np.unique(graph.activities.kind).tolist())))
    assume(kind != ActivityKind.JOIN)
    outcome = hg.what_if(graph).scale(factor=0, kind=kind.label).run()
    group = graph.select(kind=kind.label)
    assert outcome.saved_ns >= max(_saved(graph, activity) for activity in group)
    mine = np.isin(graph.edges.activity, group.activities)
    assert outcome.saved_ns <= int(np.maximum(graph.edges.lag[mine], 0).sum())


@given(graphs(), st.floats(0, 3))
@RELAXED
def test_the_error_bar_holds_the_prediction(graph: DependencyGraph, factor: float) -> None:
    outcome: Outcome = try_to(lambda: hg.what_if(graph).scale(factor=factor)).run()
    assert outcome.low <= outcome.speedup <= outcome.high
