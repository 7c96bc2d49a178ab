from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import SelectionError
from htagraph.core import traverse
from htagraph.queries.replay import predict
from htagraph.queries.weighted_paths import paths_of, replay_with_factors, times_on_paths
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Frames, frames

HALF = {"device": {"kind": "device"}}


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_the_longest_paths_of_every_trace_are_its_times(path: Path) -> None:
    graph = graph_of(path)
    time = times_on_paths(paths_of(graph))
    assert (time[:-3] == graph.time).all()
    assert time[-3] == graph.origin_ns
    assert time[-2] == graph.time[1::2][graph.awake].max()
    assert time[-1] == graph.time.max()


@given(frames())
@settings(max_examples=40)
def test_the_last_vertex_follows_all_others(dag: Frames) -> None:
    time = times_on_paths(paths_of(dag.graph))
    assert time[-1] == dag.graph.time.max()


@pytest.mark.parametrize("path", DATASETS, ids=label)
@pytest.mark.parametrize("factor", [0.0, 0.37, 1 / 3, 1.9])
def test_rounding_once_differs_from_rounding_each_edge_by_half_a_ns_per_edge(path: Path, factor: float) -> None:
    graph = graph_of(path)
    classes = {"operators": {"kind": ["op", "python", "runtime", "host_communication"]}}
    try:
        state = hg.what_if(graph).scale(factor=factor, **classes["operators"]).state
    except SelectionError:
        pytest.skip("no such time")
    rounded = predict(state.graph, state.lag, state.gap, state.head)
    exact = replay_with_factors(graph, classes, {"operators": factor})
    order, sources = graph.topological_order, graph.edges.source[graph.in_edges]
    edges = traverse.levels(order, graph.in_offsets, sources)
    # a lag and a gap are rounded for each edge of a path
    assert (np.abs(rounded - exact) <= edges).all()
    assert (rounded != exact).any() == (factor > 0)


def test_whole_factors_are_exact_in_both_ways() -> None:
    graph = graph_of(next(path for path in DATASETS if path.name == "demo"))
    for factor in (0, 1, 2, 5):
        state = hg.what_if(graph).scale(factor=factor, kind="device").state
        exact = replay_with_factors(graph, HALF, {"device": factor})
        assert (exact == predict(state.graph, state.lag, state.gap, state.head)).all()


def test_too_many_classes_are_refused() -> None:
    with pytest.raises(SelectionError, match="give at most 62"):
        paths_of(graph_of(DATASETS[0]), {str(i): {"rank": 0} for i in range(63)})
