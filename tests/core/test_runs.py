from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core import traverse
from htagraph.core.runs import Runs, runs_of
from htagraph.graph.dependency_graph import DependencyGraph
from tests.strategies import Frames, frames


def runs(graph: DependencyGraph, gap: np.ndarray, ends: np.ndarray) -> Runs:
    edges = graph.edges
    return runs_of(
        graph.topological_order, graph.in_offsets, graph.in_edges, graph.out_offsets, edges.source, edges.target,
        edges.lag, gap, graph.time, ends,
    )  # fmt: skip


def end_of(made: Runs, edges: np.ndarray, fixed: np.ndarray, gaps: np.ndarray, factor: float) -> int:
    return int(made.multiplied(edges, fixed, gaps, factor)[made.last].max())


@given(frames(), st.data(), st.sampled_from([0.0, 0.37, 0.5, 1.0, 2.5]))
@settings(max_examples=80)
def test_the_end_is_that_of_a_replay_of_every_vertex(made: Frames, data: st.DataObject, factor: float) -> None:
    graph = made.graph
    count, edges = graph.vertex_count, graph.edges
    gap = np.arange(count, dtype=np.int64) % 4 * 11
    ends = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    ends[data.draw(st.integers(0, count - 1))] = True
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, max(len(edges) - 1, 0))))) if len(edges) else [], np.int64)
    vertices = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1)))), np.int64)
    fixed = np.maximum(edges.lag[rows], 0) // 3
    lag, paused = edges.lag.copy(), gap.copy()
    left = lag[rows] - fixed
    lag[rows] = fixed + np.where(left > 0, np.rint(left * factor), left).astype(np.int64)
    paused[vertices] = np.rint(paused[vertices] * factor)
    time = traverse.schedule(
        graph.topological_order, graph.in_offsets, graph.in_edges, edges.source, lag, paused, graph.time
    )
    assert end_of(runs(graph, gap, ends), rows, fixed, vertices, factor) == time[ends].max()


@pytest.mark.parametrize("length", [10, 1000])
def test_a_chain_is_one_run(length: int) -> None:
    source, target = np.arange(length), np.arange(1, length + 1)
    offsets = np.minimum(np.arange(length + 2), length)
    into = np.maximum(np.arange(-1, length + 1), 0)
    ends = np.ones(length + 1, np.bool_)
    lag, zeros = np.full(length, 3), np.zeros(length + 1, np.int64)
    chain = runs_of(np.arange(length + 1), into, np.arange(length), offsets, source, target, lag, zeros, zeros, ends)
    assert (len(chain.length), chain.length.tolist(), len(chain.pause), len(chain.last)) == (1, [3 * length], 2, 1)
    assert end_of(chain, np.array([0, 4]), np.zeros(2, np.int64), np.zeros(0, np.int64), 0.0) == 3 * (length - 2)


def test_an_end_that_a_negative_lag_leads_on_from_still_counts() -> None:
    ends = np.ones(3, np.bool_)
    ints = np.array([0, 0, 1, 2]), np.array([0, 1]), np.array([0, 1, 2, 2]), np.array([0, 1]), np.array([1, 2])
    chain = runs_of(np.arange(3), *ints, np.array([9, -5]), np.zeros(3, np.int64), np.zeros(3, np.int64), ends)
    nothing = np.zeros(0, np.int64)
    assert end_of(chain, nothing, nothing, nothing, 1.0) == 9
