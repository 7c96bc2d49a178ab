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
from htagraph.queries.replay import predict
from htagraph.queries.time_classes import END
from htagraph.queries.weights import ChangeError, State, without_waits
from tests.queries.exact_replay import replay_with_factors
from tests.reach import DATASETS, JOBS, SHARED, graph_of, label
from tests.strategies import Frames, Job, frames, jobs, load

DEMO = next(path for path in DATASETS if path.name == "demo")
SEVERAL = [
    *DATASETS,
    *(SHARED / name for name in ("megatron_tp8_a100", "torchrec_v100_equal", "torchrec_v100_leading_missing")),
]
"""Jobs of several ranks."""


@pytest.mark.parametrize("path", SEVERAL, ids=label)
def test_the_waits_and_who_came_last_are_those_of_the_whole_graph(path: Path) -> None:
    if not path.exists():
        pytest.skip("not in reach")
    graph = graph_of(path)
    whole = graph.waits
    matched = np.flatnonzero((whole.collective >= 0) & (whole.beside == 0))
    expected = pd.DataFrame({
        "activity": whole.activity[matched], "collective": whole.collective[matched],
        "expected_us": whole.wait[matched] / 1000, "last": whole.late[matched],
    })  # fmt: skip
    table = expected.merge(hg.contract(graph).waits(), on=["activity", "collective"])
    assert len(table) == len(expected) > 0
    assert (table["wait_us"] == table["expected_us"]).all()
    assert (table["late"] == table["last"]).all()


def test_waits_change_with_the_factors() -> None:
    graph = graph_of(DEMO)
    skeleton = hg.contract(graph, {"slow": {"rank": 2}})
    assert skeleton.waits({"slow": 0.1})["wait_us"].sum() != skeleton.waits()["wait_us"].sum()


def test_the_critical_edges_are_one_chain_as_long_as_the_job() -> None:
    skeleton = hg.contract(graph_of(DEMO))
    edges = skeleton.critical_edges()
    assert (skeleton.target[edges[:-1]] == skeleton.source[edges[1:]]).all()
    assert skeleton.weight[edges, 0].sum() == skeleton.makespan_ns()
    assert (skeleton.slack_ns()[skeleton.target[edges]] == 0).all()


def test_a_sum_is_rounded_once() -> None:
    frame = pd.DataFrame({"duration_ns": [1] * 9, "name": [f"step {i}" for i in range(9)]})
    graph = DependencyGraph.from_frames(frame, pd.DataFrame({"source": range(8), "target": range(1, 9)}))
    skeleton = hg.contract(graph, {"all": {"kind": "op"}})
    assert skeleton.makespan_ns({"all": 0.4}) == 4  # 3.6; each edge alone would be 0
    assert skeleton.makespan_ns({"all": 1 / 3}) == 3
    assert hg.what_if(graph).scale(factor=0.4, kind="op").run().makespan_ns == 0


def test_errors_name_what_there_is() -> None:
    skeleton = hg.contract(graph_of(DEMO), {"kernels": {"kind": "computation"}}, most=2)
    with pytest.raises(SelectionError, match="no class 'kernel': choose from kernels"):
        skeleton.times({"kernel": 1})
    for factor in (-1, 2.5, float("nan")):
        with pytest.raises(ChangeError, match="kernels="):
            skeleton.times({"kernels": factor})
    with pytest.raises(KeyError, match="is not in this skeleton"):
        skeleton.positions(np.array([1 << 40]))


def test_the_size_is_shown() -> None:
    assert repr(hg.contract(load({0: []}))) == "Skeleton(3 vertices, 2 edges)"
    assert "classes kernels" in repr(hg.contract(graph_of(DEMO), {"kernels": {"kind": "computation"}}))


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
    both = hg.what_if(demo).no_launch_overhead().no_overlap().state
    for change in ({"a": 0}, {"b": 0}, {"a": 0, "b": 0}):
        chosen = [{"a": waits, "b": overlap}[name] for name in change]
        state = chosen[0] if len(chosen) == 1 else both
        expected = replay_with_factors(state, kernels, {"kernels": 0.5})
        assert error_ns(skeleton, expected, change | {"kernels": 0.5}) == 0


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_slack_of_every_trace_is_that_of_the_whole_graph(path: Path) -> None:
    graph = graph_of(path)
    skeleton, edges, end = hg.contract(graph), graph.edges, int(graph.time.max())
    late = traverse.latest(graph.topological_order, graph.out_offsets, edges.target, edges.lag, graph.gap, end)
    known = skeleton.vertex >= 0
    assert (skeleton.slack_ns()[known] == (late - graph.time)[skeleton.vertex[known]]).all()


def test_a_state_of_another_graph_is_no_switch(demo: DependencyGraph) -> None:
    with pytest.raises(SelectionError, match="the state of another graph"):
        hg.contract(demo, {"other": hg.what_if(load({0: []})).state})


def test_an_empty_job_has_a_skeleton() -> None:
    skeleton = hg.contract(load({0: []}))
    assert skeleton.makespan_ns() == 0
    assert END in skeleton.vertex
