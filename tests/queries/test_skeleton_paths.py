from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, SelectionError
from htagraph.queries.replay import predict
from htagraph.queries.skeleton_paths import expand
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Frames, frames


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
