from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.eliminate import shrink
from tests.core.contraction.drawn import Dag, dags, distances, edges_of, factors_of, net


@given(st.data(), dags())
@settings(max_examples=100)
def test_shrinking_keeps_longest_paths_between_terminals(data: st.DataObject, dag: Dag) -> None:
    made = net(dag)
    shrink(made, np.array(dag.terminal), np.array(dag.bounds))
    left, factors = edges_of(made), data.draw(factors_of(dag))
    assert len(left) <= len(dag.edges)
    ends = [vertex for vertex in dag.order if dag.terminal[vertex]]
    assert distances(left, dag.order, ends, factors) == distances(dag.edges, dag.order, ends, factors)


def test_a_vertex_leaves_if_that_adds_no_edges() -> None:
    both = [(0, 2, (1,)), (1, 2, (2,)), (2, 3, (3,)), (2, 4, (4,))]
    made = net(Dag([0, 1, 2, 3, 4], both, [True, True, False, True, True], [1]))
    shrink(made, np.array([True, True, False, True, True]), np.ones(1, np.int64))
    assert sorted(edges_of(made)) == [(0, 3, (4,)), (0, 4, (5,)), (1, 3, (5,)), (1, 4, (6,))]


def test_a_hub_stays() -> None:
    edges = [(i, 3, (1,)) for i in range(3)] + [(3, i, (1,)) for i in range(4, 7)]
    ends = np.array([i != 3 for i in range(7)])
    made = net(Dag(list(range(7)), edges, ends.tolist(), [1]))
    shrink(made, ends, np.ones(1, np.int64))
    assert sorted(edges_of(made)) == edges
