from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.prune import prune
from tests.core.contraction.drawn import Dag, dags, distances, edges_of, factors_of, net


@given(st.data(), dags())
@settings(max_examples=100)
def test_pruning_keeps_longest_paths_between_all_vertices(data: st.DataObject, dag: Dag) -> None:
    made = net(dag)
    prune(made, np.array(dag.bounds))
    left, factors = edges_of(made), data.draw(factors_of(dag))
    assert len(left) <= len(dag.edges)
    assert distances(left, dag.order, dag.order, factors) == distances(dag.edges, dag.order, dag.order, factors)


def test_an_edge_beside_a_longer_way_is_pruned() -> None:
    made = net(Dag([0, 1, 2], [(0, 1, (2,)), (1, 2, (3,)), (0, 2, (5,))], [True] * 3, [1]))
    assert prune(made, np.ones(1, np.int64)) > 0
    assert sorted(edges_of(made)) == [(0, 1, (2,)), (1, 2, (3,))]
