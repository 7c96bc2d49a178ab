from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.contract import Contracted, collapse, contract, relevant_ends
from htagraph.core.contraction.net import UNBOUNDED
from htagraph.core.traverse import counting_order
from tests.core.contraction.drawn import Dag, dags, distances, factors_of, sparse


def contracted(dag: Dag) -> Contracted:
    return contract(
        np.array(dag.order, np.int32), dag.source, dag.target, sparse(dag.weight),
        terminal=np.array(dag.terminal), bounds=np.array(dag.bounds),
    )  # fmt: skip


def edges_of(small: Contracted) -> list[tuple[int, int, tuple[int, ...]]]:
    source, target = small.vertex[small.source].tolist(), small.vertex[small.target].tolist()
    return list(zip(source, target, map(tuple, small.weight.tolist()), strict=True))


@given(st.data(), dags())
@settings(max_examples=120)
def test_longest_paths_between_terminals_stay_as_long(data: st.DataObject, dag: Dag) -> None:
    small = contracted(dag)
    factors = data.draw(factors_of(dag))
    ends = [vertex for vertex in dag.order if dag.terminal[vertex]]
    expected = distances(dag.edges, dag.order, ends, factors)
    assert distances(edges_of(small), small.vertex.tolist(), ends, factors) == expected


@given(dags())
@settings(max_examples=40)
def test_what_is_left_is_smaller_and_sorted(dag: Dag) -> None:
    small = contracted(dag)
    assert len(small.source) <= len(dag.edges)
    assert {vertex for vertex in dag.order if dag.terminal[vertex]} <= set(small.vertex.tolist())
    place = {vertex: at for at, vertex in enumerate(dag.order)}
    places = [place[vertex] for vertex in small.vertex.tolist()]
    assert places == sorted(places)
    assert (small.source < small.target).all()
    assert np.array_equal(np.lexsort((small.source, small.target)), np.arange(len(small.source)))


@given(dags(most=12, components=1))
@settings(max_examples=40)
def test_of_numbers_one_edge_is_left_between_two_vertices(dag: Dag) -> None:
    small = contracted(dag)
    assert len(set(zip(small.source.tolist(), small.target.tolist(), strict=True))) == len(small.source)


def test_a_chain_becomes_one_edge() -> None:
    count = 50
    edges = [(i, i + 1, (2,)) for i in range(count - 1)]
    ends = [i in {0, count - 1} for i in range(count)]
    small = contracted(Dag(list(range(count)), edges, ends, [1]))
    assert edges_of(small) == [(0, count - 1, (2 * (count - 1),))]


def test_two_ways_with_different_classes_stay_two_edges() -> None:
    edges = [(0, 1, (5, 0)), (1, 3, (0, 0)), (0, 2, (0, 3)), (2, 3, (0, 1))]
    small = contracted(Dag([0, 1, 2, 3], edges, [True, False, False, True], [1, -1]))
    assert sorted(edges_of(small)) == [(0, 3, (0, 4)), (0, 3, (5, 0))]


def test_a_way_that_no_allowed_factor_makes_the_longest_leaves() -> None:
    edges = [(0, 1, (5, 0)), (1, 3, (0, 0)), (0, 2, (0, 3)), (2, 3, (0, 1))]
    small = contracted(Dag([0, 1, 2, 3], edges, [True, False, False, True], [1, 1]))
    assert edges_of(small) == [(0, 3, (5, 0))]


def grid(width: int, depth: int) -> Dag:
    """Return `width` chains of `depth` vertices between which edges lead back and forth, as streams and threads do."""
    rng = np.random.default_rng(width * depth)
    edges = []
    for layer in range(depth - 1):
        for lane in range(width):
            at = layer * width + lane
            edges.append((at, at + width, (int(rng.integers(1, 9)),)))
            if not rng.integers(4):
                edges.append((at, (layer + 1) * width + int(rng.integers(width)), (int(rng.integers(1, 9)),)))
    count = width * depth
    terminal = [vertex < width or vertex >= count - width or not vertex % 97 for vertex in range(count)]
    return Dag(list(range(count)), edges, terminal, [1])


@pytest.mark.parametrize("width", [3, 12])
def test_the_work_grows_with_the_number_of_edges(width: int) -> None:
    per_edge = []
    for depth in (300, 1500):  # five times as many edges; how many rounds there are differs a little
        dag = grid(width, depth)
        per_edge.append(contracted(dag).work / len(dag.edges))
    assert per_edge[1] < 1.5 * per_edge[0]


@pytest.mark.parametrize("size", [1, 2])  # with 2, paths side by side, none of which covers another
def test_a_hub_with_many_edges_takes_linear_work(size: int) -> None:
    per_edge = []
    for count in (500, 4000):
        edges = [(0, i, (1, i)[:size]) for i in range(1, count)]
        edges += [(i, count, ((i % 7, count - i)[size - 1], 0)[:size]) for i in range(1, count)]
        edges += [(i, i + 1, (1,)) for i in range(1, count - 1) if size == 1]
        terminal = [i in {0, count} or (size == 1 and not i % 3) for i in range(count + 1)]
        per_edge.append(contracted(Dag([*range(count + 1)], edges, terminal, [1, UNBOUNDED][:size])).work / len(edges))
    assert per_edge[1] < 1.15 * per_edge[0]


@given(st.data(), dags())
@settings(max_examples=100)
def test_one_pass_keeps_longest_paths_between_terminals(data: st.DataObject, dag: Dag) -> None:
    backward = data.draw(st.booleans())
    near, far = (dag.target, dag.source) if backward else (dag.source, dag.target)
    order: npt.NDArray[np.int32] = np.array(dag.order[::-1] if backward else dag.order, np.int32)
    made = collapse(
        order, *counting_order(far, len(order)), near, dag.weight, np.array(dag.terminal), np.array(dag.bounds)
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
    ends, order = np.array(dag.terminal), np.array(dag.order, np.int32)
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
        np.arange(3), *counting_order(dag.target, 3), dag.source, dag.weight, np.array(dag.terminal), np.ones(1)
    )
    assert len(made.source) == 1
    assert (made.source[0], made.target[0], made.weight[0].tolist()) == (0, 2, [9])
