from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, SelectionError
from htagraph.queries.replay import predict
from htagraph.queries.skeleton import expand
from htagraph.queries.weights import ChangeError
from tests.reach import DATASETS, JOBS, SHARED, graph_of, label
from tests.strategies import Frames, frames, load

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


def edges_between(graph: DependencyGraph, moments: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the edges between successive moments, having asserted that there are such edges."""
    keys = graph.edges.source * np.int64(graph.vertex_count) + graph.edges.target
    wanted = moments[:-1] * np.int64(graph.vertex_count) + moments[1:]
    at = np.searchsorted(keys, wanted)
    assert (keys[at] == wanted).all()
    return at


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_the_critical_edges_of_every_trace_expand_to_a_critical_path(path: Path) -> None:
    graph = graph_of(path)
    skeleton = hg.contract(graph)
    edges = skeleton.critical_edges()
    assert skeleton.weight[edges, 0].sum() == skeleton.makespan_ns()
    moments = expand(graph, skeleton, edges)
    into = edges_between(graph, moments)
    time = graph.time[moments]
    assert (np.diff(time) == graph.edges.lag[into] + graph.gap[moments[1:]]).all()
    assert time[-1] - graph.origin_ns == skeleton.makespan_ns()
    assert len(graph.in_edges[graph.in_offsets[moments[0]] : graph.in_offsets[moments[0] + 1]]) == 0


@given(frames(max_size=9))
@settings(max_examples=40)
def test_every_edge_expands_to_a_path_as_long_as_it_is(dag: Frames) -> None:
    graph = dag.graph
    skeleton = hg.contract(graph)
    for edge in range(len(skeleton.source)):
        if (skeleton.vertex[[skeleton.source[edge], skeleton.target[edge]]] < 0).any():
            continue
        moments = expand(graph, skeleton, np.array([edge]))
        into = edges_between(graph, moments)
        assert (graph.edges.lag[into] + graph.gap[moments[1:]]).sum() == skeleton.weight[edge, 0]


def test_with_factors_the_path_is_that_of_the_changed_job() -> None:
    graph = graph_of(next(path for path in DATASETS if path.name == "demo"))
    classes, factors = {"kernels": {"kind": "computation"}}, {"kernels": 0.0}
    skeleton = hg.contract(graph, classes)
    edges = skeleton.critical_edges(factors)
    moments = expand(graph, skeleton, edges, classes=classes, factors=factors)
    state = hg.what_if(graph).scale(factor=0.0, kind="computation").state
    time = predict(state.graph, state.lag, state.gap, state.head)[moments]
    into = edges_between(graph, moments)
    assert (np.diff(time) == state.lag[into] + state.gap[moments[1:]]).all()
    assert time[-1] - graph.origin_ns == skeleton.makespan_ns(factors)


def test_a_skeleton_of_another_job_is_refused() -> None:
    demo, other = (graph_of(path) for path in DATASETS[:2])
    skeletons = [hg.contract(each) for each in (demo, other)]
    for graph, skeleton in ((demo, skeletons[1]), (other, skeletons[0])):
        with pytest.raises(SelectionError, match="of another job"):
            expand(graph, skeleton, np.arange(len(skeleton.source)))
