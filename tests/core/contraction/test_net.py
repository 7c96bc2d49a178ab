from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.net import (
    IN_DEGREE,
    OUT_DEGREE,
    SOURCE,
    UNBOUNDED,
    cover_together,
    covers,
    insert,
    prune,
    remove,
    shrink,
)
from tests.core.contraction.drawn import Dag, dags, distances, edges_of, factors_of, net


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(3, 5)), min_size=1, max_size=12), st.data())
def test_edges_come_and_go(ends: list[tuple[int, int]], data: st.DataObject) -> None:
    edges = [(source, target, (at,)) for at, (source, target) in enumerate(ends)]
    made = net(Dag(list(range(6)), edges, [True] * 6, [1]))
    gone = data.draw(st.sets(st.integers(0, len(edges) - 1)))
    place = {int(weight): edge for edge, weight in enumerate(made.weight[:, 0]) if made.edge[edge, SOURCE] >= 0}
    for at in gone:
        remove(made, place[at])
    insert(made, 1, 4, np.array([[99]]), 0)
    left = sorted([*(edge for at, edge in enumerate(edges) if at not in gone), (1, 4, (99,))])
    assert sorted(edges_of(made)) == left
    assert made.vertex[:, OUT_DEGREE].tolist() == [sum(edge[0] == vertex for edge in left) for vertex in range(6)]
    assert made.vertex[:, IN_DEGREE].tolist() == [sum(edge[1] == vertex for edge in left) for vertex in range(6)]


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


_VECTORS = st.tuples(*[st.integers(-4, 4)] * 3)


@given(_VECTORS, _VECTORS, st.tuples(*[st.sampled_from([UNBOUNDED, 1, 2])] * 2))
@settings(max_examples=200)
def test_a_vector_covers_another_if_it_is_as_long_for_all_factors(
    first: tuple[int, ...], second: tuple[int, ...], limits: tuple[int, ...]
) -> None:
    # the difference is linear in each factor, so that the corners decide; 100 stands for any
    corners = itertools.product([1], *([0, 100 if limit == UNBOUNDED else limit] for limit in limits))
    longer = all(np.dot(first, factors) >= np.dot(second, factors) for factors in corners)
    rows = np.array([first]), 0, np.array([second]), 0
    assert covers(*rows, np.array([1, *limits])) == longer


@given(_VECTORS, _VECTORS, _VECTORS, st.tuples(*[st.sampled_from([UNBOUNDED, 1, 2])] * 2))
@settings(max_examples=300)
def test_two_vectors_that_cover_a_third_one_are_longer_for_all_factors(
    first: tuple[int, ...], second: tuple[int, ...], third: tuple[int, ...], limits: tuple[int, ...]
) -> None:
    rows = 1000 * np.array([first, second, third])
    if not cover_together(rows, 0, 1, 2, np.array([1, *limits])):
        return
    each = [np.linspace(0, 50 if limit == UNBOUNDED else limit, 40) for limit in limits]
    factors = np.array([[1, *values] for values in itertools.product(*each)])
    length = factors @ rows.T
    assert (length[:, :2].max(axis=1) >= length[:, 2]).all()


def test_a_vector_between_two_others_is_covered_by_both_together() -> None:
    rows = np.array([[100, 0], [0, 100], [40, 40], [60, 60]])
    bounds = np.array([1, UNBOUNDED])
    assert cover_together(rows, 0, 1, 2, bounds)
    assert cover_together(rows, 1, 0, 2, bounds)
    assert not cover_together(rows, 0, 1, 3, bounds)
    assert not covers(rows, 0, rows, 2, bounds)
    assert not covers(rows, 1, rows, 2, bounds)
