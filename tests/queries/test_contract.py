from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph, SelectionError, Skeleton
from htagraph.core import traverse
from htagraph.queries.contract import joined, rank_parts
from htagraph.queries.replay import predict
from htagraph.queries.time_classes import END, replay_with_factors
from htagraph.queries.weights import State, without_waits
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Frames, Job, frames, jobs, load

Classes = dict[str, Mapping[str, Any]]
CLASSES: Classes = {
    "computation": {"kind": "computation"},
    "communication": {"kind": ["communication", "host_communication"]},
    "host": {"kind": "host"},
    "operators": {"kind": "op"},
    "first step": {"step_index": 0},
}
"""Selections that overlap."""


def classes_of(graph: DependencyGraph) -> Classes:
    """Return the classes that have any time in a graph."""
    found: Classes = {}
    for name, criteria in CLASSES.items():
        try:
            hg.what_if(graph).scale(factor=1, **criteria)
        except SelectionError:
            continue
        found[name] = criteria
    return found


def error_ns(skeleton: Skeleton, expected: npt.NDArray[np.int64], factors: Mapping[str, float] | None = None) -> int:
    """Return the largest difference between the moments of a skeleton and those of the whole graph, ns."""
    known = skeleton.vertex >= 0
    return int(np.abs(skeleton.times(factors)[known] - expected[skeleton.vertex[known]]).max(initial=0))


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_the_skeleton_of_every_trace_has_its_times_to_the_nanosecond(path: Path) -> None:
    graph = graph_of(path)
    skeleton = hg.contract(graph)
    assert error_ns(skeleton, graph.time) == 0
    assert skeleton.makespan_ns() == hg.what_if(graph).run().baseline_ns
    pd.testing.assert_frame_equal(skeleton.step_times(), hg.step_times(graph))
    assert len(skeleton.source) <= len(graph.edges) + 4


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_one_skeleton_of_every_trace_serves_all_factors(path: Path) -> None:
    graph = graph_of(path)
    classes = classes_of(graph)
    skeleton = hg.contract(graph, classes)
    for factor in (1.0, 0.3, 2.1):
        factors = {name: factor + i / 8 for i, name in enumerate(classes)}
        assert error_ns(skeleton, replay_with_factors(graph, classes, factors), factors) == 0


@given(frames(max_size=9))
@settings(max_examples=40)
def test_the_skeleton_of_every_dag_has_its_times_and_end(dag: Frames) -> None:
    graph = dag.graph
    skeleton = hg.contract(graph)
    assert error_ns(skeleton, graph.time) == 0
    assert skeleton.makespan_ns() == int(graph.time[1::2].max()) - graph.origin_ns


@given(st.data(), jobs(min_size=2))
@settings(max_examples=25)
def test_one_skeleton_serves_all_factors_of_every_job(data: st.DataObject, job: Job) -> None:
    graph = load(job)
    classes = classes_of(graph)
    numbers = st.decimals(0, 9, places=2).map(float)
    factors = {name: data.draw(numbers) for name in classes}
    expected = replay_with_factors(graph, classes, factors)
    assert error_ns(hg.contract(graph, classes), expected, factors) == 0
    assert error_ns(hg.contract(graph, classes, most=9), expected, factors) == 0


@given(st.data(), jobs(min_size=2))
@settings(max_examples=20)
def test_the_skeletons_of_ranks_joined_are_that_of_the_job(data: st.DataObject, job: Job) -> None:
    graph = load(job)
    classes = classes_of(graph)
    assert_same(data, hg.contract(graph, classes), joined(rank_parts(graph, classes)))


@pytest.mark.parametrize("path", DATASETS, ids=label)
@given(data=st.data())
@settings(max_examples=3)
def test_the_skeletons_of_recorded_ranks_joined_are_that_of_the_job(data: st.DataObject, path: Path) -> None:
    graph = graph_of(path)
    parts = rank_parts(graph)
    assert len(parts) == 1 + len(graph.ranks)
    whole, both = hg.contract(graph), joined([joined(parts[:2]), joined(parts[2:])])
    assert_same(data, whole, both)
    assert len(both.source) < 1.2 * len(whole.source)


def test_parts_with_numbers_of_their_own_are_joined_by_those_of_the_job(demo: DependencyGraph) -> None:
    rng = np.random.default_rng(0)
    count = len(demo.activities)
    shuffled = np.repeat(2 * rng.permutation(count), 2) + np.arange(2 * count) % 2
    back = np.argsort(shuffled)
    whole = hg.contract(demo)
    both = joined([part.renumbered(shuffled).renumbered(back) for part in rank_parts(demo)])
    other = joined([part.renumbered(shuffled) for part in rank_parts(demo)])
    again = joined(rank_parts(demo))
    assert np.array_equal(both.vertex, again.vertex)
    assert np.array_equal(both.weight, again.weight)
    ends = whole.vertex[whole.terminal & (whole.vertex >= 0)]
    assert (other.times()[other.positions(shuffled[ends])] == demo.time[ends]).all()
    assert sorted(other.waits()["wait_us"]) == sorted(whole.waits()["wait_us"])
    pd.testing.assert_frame_equal(other.step_times(), whole.step_times())


def test_vertices_that_are_to_stay_do(demo: DependencyGraph) -> None:
    keep = np.arange(100, 140)
    skeleton = hg.contract(demo, keep=keep)
    assert (skeleton.times()[skeleton.positions(keep)] == demo.time[keep]).all()
    assert skeleton.terminal[skeleton.positions(keep)].all()


@given(st.data(), frames(max_size=8))
@settings(max_examples=60)
def test_any_edges_may_be_switched_off_beside_any_factors(data: st.DataObject, dag: Frames) -> None:
    graph = dag.graph
    state = hg.what_if(graph).state
    for name in ("a", "b"):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(graph.edges), max_size=len(graph.edges))), bool)
        mask &= graph.edges.activity < 0  # time that is scaled must go as a whole or stay
        switched = without_waits(state, mask)
        classes: dict[str, Any] = {
            name: switched,
            "some": {"activity": data.draw(st.integers(0, len(graph.activities) - 1))},
        }
        factors = {name: data.draw(st.sampled_from([0, 1])), "some": data.draw(st.sampled_from([0.0, 0.5, 1.0, 7.0]))}
        try:
            skeleton = hg.contract(graph, classes)
        except SelectionError:
            continue
        expected = replay_with_factors(
            state if factors[name] else switched, {"some": classes["some"]}, {"some": factors["some"]}
        )
        assert error_ns(skeleton, expected, factors) == 0


def assert_same(data: st.DataObject, whole: Skeleton, both: Skeleton) -> None:
    """Assert that two skeletons have the same terminals at all factors, and equal longest paths between them."""
    ends = whole.vertex[whole.terminal]
    assert set(ends.tolist()) <= set(both.vertex[both.terminal].tolist())
    factors = {name: data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for name in whole.classes.names}
    assert (whole.times(factors)[whole.positions(ends)] == both.times(factors)[both.positions(ends)]).all()
    begin = data.draw(st.sampled_from(ends.tolist()))
    paths = [distances(each, begin, factors)[each.positions(ends)] for each in (whole, both)]
    assert (paths[0] == paths[1]).all()
    assert whole.makespan_ns(factors) == both.makespan_ns(factors)
    pd.testing.assert_frame_equal(whole.step_times(factors), both.step_times(factors))
    waits = [each.waits(factors).sort_values(["collective", "activity"], ignore_index=True) for each in (whole, both)]
    pd.testing.assert_frame_equal(waits[0], waits[1])


def distances(skeleton: Skeleton, begin: int, factors: Mapping[str, float]) -> npt.NDArray[np.int64]:
    """Return the length of a longest path from a vertex to every other one, far below 0 where there is none."""
    numerators, _ = skeleton.classes.numerators(factors)
    length = np.full(len(skeleton.vertex), -(1 << 60))
    length[skeleton.positions(np.array([begin]))] = 0
    for source, target, weight in zip(skeleton.source, skeleton.target, skeleton.weight @ numerators, strict=True):
        if length[source] > -(1 << 59):
            length[target] = max(length[target], length[source] + weight)
    return np.maximum(length, -(1 << 59))


STATES: dict[str, Any] = {
    "scale": lambda each: each.scale(factor=0.37, kind="computation"),
    "scale the network": lambda each: each.scale_network(factor=0.61),
    "set a duration": lambda each: each.set_duration(ns=777, kind="computation"),
    "remove": lambda each: each.remove(kind="memory"),
    "remove waits": lambda each: each.remove_sync(),
    "no launch overhead": lambda each: each.no_launch_overhead(),
    "an infinitely fast host": lambda each: each.infinite_host(),
    "an infinitely fast device": lambda each: each.infinite_gpu(),
    "perfect overlap": lambda each: each.perfect_overlap(),
    "no overlap": lambda each: each.no_overlap(),
    "the straggler": lambda each: each.fix_straggler(rank=2),
    "one slow rank": lambda each: each.inject(rank=0, factor=1.3),
}


@pytest.fixture(scope="module")
def demo() -> DependencyGraph:
    return graph_of(next(path for path in DATASETS if path.name == "demo"))


def state_of(graph: DependencyGraph, change: str) -> State:
    state: State = STATES[change](hg.what_if(graph)).state
    return state


@pytest.mark.parametrize("change", STATES)
def test_a_changed_job_has_a_skeleton_with_its_times(demo: DependencyGraph, change: str) -> None:
    state = state_of(demo, change)
    time = predict(state.graph, state.lag, state.gap, state.head)
    assert error_ns(hg.contract(state), time) == 0
    assert (time != demo.time).any()


@pytest.mark.parametrize("change", STATES)
def test_a_change_is_a_switch_of_a_skeleton(demo: DependencyGraph, change: str) -> None:
    state = state_of(demo, change)
    skeleton = hg.contract(demo, {change: state})
    time = predict(state.graph, state.lag, state.gap, state.head)
    assert error_ns(skeleton, time, {change: 0}) == 0
    assert error_ns(skeleton, demo.time, {change: 1}) == 0
    assert skeleton.makespan_ns({change: 0}) == int(time[1::2][demo.awake].max()) - demo.origin_ns


def test_switches_and_factors_go_together(demo: DependencyGraph) -> None:
    waits, overlap = state_of(demo, "no overlap"), state_of(demo, "no launch overhead")
    kernels: Classes = {"kernels": {"kind": "computation"}}
    skeleton = hg.contract(demo, {"a": waits, "b": overlap, **kernels})
    for change in ({"a": 0}, {"b": 0}, {"a": 0, "b": 0}):
        chosen = [{"a": waits, "b": overlap}[name] for name in change]
        state = chosen[0] if len(chosen) == 1 else state_of_both(demo)
        expected = replay_with_factors(state, kernels, {"kernels": 0.5})
        assert error_ns(skeleton, expected, change | {"kernels": 0.5}) == 0


def state_of_both(graph: DependencyGraph) -> State:
    return hg.what_if(graph).no_launch_overhead().no_overlap().state


def test_slack_is_that_of_the_whole_graph(demo: DependencyGraph) -> None:
    skeleton, edges, end = hg.contract(demo), demo.edges, int(demo.time.max())
    late = traverse.latest(demo.topological_order, demo.out_offsets, edges.target, edges.lag, demo.gap, end)
    known = skeleton.vertex >= 0
    assert (skeleton.slack_ns()[known] == (late - demo.time)[skeleton.vertex[known]]).all()


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_slack_of_every_trace_is_that_of_the_whole_graph(path: Path) -> None:
    test_slack_is_that_of_the_whole_graph(graph_of(path))


def test_a_state_of_another_graph_is_no_switch(demo: DependencyGraph) -> None:
    with pytest.raises(SelectionError, match="the state of another graph"):
        hg.contract(demo, {"other": hg.what_if(load({0: []})).state})


def test_parts_of_different_jobs_are_not_joined(demo: DependencyGraph) -> None:
    other = hg.contract(graph_of(DATASETS[-1]))
    for parts in ([], [hg.contract(demo), other], [hg.contract(demo), hg.contract(demo, {"a": {"rank": 0}})]):
        with pytest.raises(SelectionError, match="give the parts of one job"):
            joined(parts)


def test_an_empty_job_has_a_skeleton() -> None:
    skeleton = hg.contract(load({0: []}))
    assert skeleton.makespan_ns() == 0
    assert END in skeleton.vertex
