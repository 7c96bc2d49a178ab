from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.collapse import collapse, relevant_ends
from htagraph.core.contraction.vectors import sparse
from htagraph.core.traverse import counting_order
from tests.core.contraction.drawn import Dag, dags, distances, factors_of


@given(st.data(), dags())
@settings(max_examples=100)
def test_one_pass_keeps_longest_paths_between_terminals(data: st.DataObject, dag: Dag) -> None:
    backward = data.draw(st.booleans())
    near, far = (dag.target, dag.source) if backward else (dag.source, dag.target)
    order: npt.NDArray[np.int32] = np.array(dag.order[::-1] if backward else dag.order, np.int32)
    made = collapse(
        order, *counting_order(far, len(order)), near, sparse(dag.weight), np.array(dag.terminal), np.array(dag.bounds)
    )
    begin, end = (made.target, made.source) if backward else (made.source, made.target)
    edges = list(zip(begin.tolist(), end.tolist(), map(tuple, made.weight.tolist()), strict=True))
    factors = data.draw(factors_of(dag))
    ends = [vertex for vertex in dag.order if dag.terminal[vertex]]
    assert distances(edges, dag.order, ends, factors) == distances(dag.edges, dag.order, ends, factors)
    assert made.work >= len(dag.edges)


@given(st.data(), dags())
@settings(max_examples=100)
def test_one_of_the_relevant_ends_happens_last(data: st.DataObject, dag: Dag) -> None:
    ends = np.array(dag.terminal)
    order = np.array(dag.order, np.int32)
    leaving = counting_order(dag.source, len(order))
    chosen = relevant_ends(order, *leaving, dag.target, sparse(dag.weight), np.array(dag.bounds), ends)
    assert not (chosen & ~ends).any()
    factors = data.draw(factors_of(dag))
    begin = data.draw(st.sampled_from(dag.order))
    length = distances(dag.edges, dag.order, dag.order, factors)
    reached = {end: at for (first, end), at in length.items() if first == begin and ends[end]}
    if reached:
        assert max(at for end, at in reached.items() if chosen[end]) == max(reached.values())


def test_a_vertex_with_one_predecessor_leaves() -> None:
    dag = Dag([0, 1, 2], [(0, 1, (4,)), (1, 2, (5,)), (0, 2, (3,))], [True, False, True], [1])
    made = collapse(
        np.arange(3), *counting_order(dag.target, 3), dag.source, sparse(dag.weight), np.array(dag.terminal), np.ones(1)
    )
    assert len(made.source) == 1
    assert (made.source[0], made.target[0], made.weight[0].tolist()) == (0, 2, [9])
