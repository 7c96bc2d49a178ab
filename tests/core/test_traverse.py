"""Small DAGs whose answers can be read off; `tests/analyses/test_slack.py` compares random ones with rescheduling."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph import DependencyGraph
from htagraph.core import traverse
from htagraph.core.parents import nearest
from htagraph.core.traverse import chain_order, climb, deciding
from tests import oracles
from tests.strategies import Frames, frames


@given(st.lists(st.integers(0, 5), max_size=20))
@settings(max_examples=50)
def test_counting_order_is_a_stable_sort(keys: list[int]) -> None:
    offsets, order = traverse.counting_order(np.array(keys, np.int64), 6)
    assert order.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])
    assert offsets.tolist() == [sum(key < each for key in keys) for each in range(7)]


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_every_vertex_comes_after_its_predecessors(made: Frames) -> None:
    graph = made.graph
    for order in (graph.topological_order, chain_order(graph.out_offsets, graph.edges.target)):
        place = {vertex: i for i, vertex in enumerate(order.tolist())}
        assert sorted(place) == list(range(graph.vertex_count))
        assert all(place[source] < place[target] for source, target, _ in oracles.edges_of(graph))


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_the_longest_path_is_the_longest_of_all_paths(made: Frames) -> None:
    graph = made.graph
    incoming = graph.in_edges
    best, _ = traverse.longest_path(
        graph.topological_order, graph.in_offsets, graph.edges.source[incoming], graph.edges.lag[incoming]
    )
    assert best.max() == oracles.longest_path_length(graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edges", "redundant"),
    [
        ([(0, 1), (0, 2), (1, 2)], [(0, 2)]),
        ([(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)], [(0, 2), (0, 3)]),
        ([(0, 1), (0, 2), (1, 3), (2, 3)], []),
        ([(0, 4), (0, 3), (3, 2), (2, 1), (1, 4), (3, 4)], [(0, 4), (3, 4)]),
    ],
)
def test_an_edge_beside_another_path_is_redundant(edges: list[tuple[int, int]], redundant: list[Any]) -> None:
    source, target = np.array(sorted(edges), np.int32).T
    offsets = np.searchsorted(source, np.arange(6))
    order = traverse.topological_order(offsets, target)
    found = traverse.redundant_edges(order, offsets, target)
    assert list(zip(source[found].tolist(), target[found].tolist(), strict=True)) == redundant


@pytest.mark.slow
@given(frames(max_size=15))
@settings(max_examples=100)
def test_the_redundant_edges_are_those_that_networkx_leaves_out(made: Frames) -> None:
    graph = made.graph
    stays = ~traverse.redundant_edges(graph.topological_order, graph.out_offsets, graph.edges.target)
    ours = set(zip(graph.edges.source[stays].tolist(), graph.edges.target[stays].tolist(), strict=True))
    assert ours == set(nx.transitive_reduction(graph.to_networkx()).edges)


@pytest.mark.parametrize("order", [traverse.topological_order, chain_order])
def test_a_cycle_shortens_the_order(order: Any) -> None:
    assert order(np.array([0, 1, 2, 3]), np.array([1, 2, 1], np.int32)).tolist() == [0]


def following(graph: DependencyGraph) -> dict[int, list[tuple[int, int]]]:
    """Return (target, lag) of the edges that leave each vertex."""
    out: dict[int, list[tuple[int, int]]] = {}
    for source, target, lag in oracles.edges_of(graph):
        out.setdefault(source, []).append((target, lag))
    return out


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_a_schedule_puts_each_vertex_where_its_predecessors_allow_plus_its_gap(made: Frames) -> None:
    graph, edges = made.graph, made.graph.edges
    gap, head = np.arange(graph.vertex_count) % 3, np.arange(graph.vertex_count) * 10
    time = traverse.schedule(
        graph.topological_order, graph.in_offsets, graph.in_edges, edges.source, edges.lag, gap, head
    )
    for vertex in range(graph.vertex_count):
        allowed = [time[source] + lag for source, target, lag in oracles.edges_of(graph) if target == vertex]
        assert time[vertex] == (max(allowed) + gap[vertex] if allowed else head[vertex])


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_the_latest_moment_is_the_end_less_the_longest_path_to_it(made: Frames) -> None:
    graph, edges = made.graph, made.graph.edges
    gap, out = np.arange(graph.vertex_count) % 3, following(graph)

    def to_the_end(vertex: int) -> int:
        return max([0, *(lag + int(gap[target]) + to_the_end(target) for target, lag in out.get(vertex, []))])

    late = traverse.latest(graph.topological_order, graph.out_offsets, edges.target, edges.lag, gap, 1000)
    assert late.tolist() == [1000 - to_the_end(vertex) for vertex in range(graph.vertex_count)]


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_levels_and_reach_are_those_of_networkx(made: Frames) -> None:
    graph = made.graph
    edges = graph.edges
    whole = nx.MultiDiGraph([(source, target) for source, target, _ in oracles.edges_of(graph)])
    whole.add_nodes_from(range(graph.vertex_count))
    level = traverse.levels(graph.topological_order, graph.in_offsets, edges.source[graph.in_edges])
    assert [{*np.flatnonzero(level == n).tolist()} for n in range(level.max() + 1)] == [
        {*generation} for generation in nx.topological_generations(whole)
    ]
    for start in range(graph.vertex_count):
        seen = traverse.reach(graph.out_offsets, edges.target, np.array([start]))
        assert {*np.flatnonzero(seen).tolist()} == nx.descendants(whole, start) | {start}
    assert not traverse.reach(graph.out_offsets, edges.target, np.zeros(0, np.int64)).any()


def test_times_are_compiled_once_whatever_types_the_arrays_have() -> None:
    offsets, none = np.array([0, 0, 1]), np.zeros(0, np.int64)
    fixed = np.array([5, 5], np.int64)
    fixed.flags.writeable = False
    for order, lag, gap in (
        (np.arange(2), np.array([3]), np.array([0, 1])),
        (np.arange(2, dtype=np.int32), np.array([9, 3, 9])[1::3], fixed),
    ):
        time = traverse.schedule(order, offsets, np.zeros(1, order.dtype), np.zeros(1, order.dtype), lag, gap, fixed)
        assert time.tolist() == [5, 8 + gap[1]]
    compiled: Any = traverse._set_times
    assert len(compiled.signatures) == 1
    assert traverse.schedule(none, np.zeros(1, np.int64), none, none, none, none, none).tolist() == []


def test_a_chain_is_followed_to_its_end_before_the_next_begins() -> None:
    offsets, targets = np.array([0, 1, 2, 3, 4, 4, 4]), np.array([2, 3, 4, 5], np.int32)
    assert chain_order(offsets, targets).tolist() == [0, 2, 4, 1, 3, 5]


@given(frames(), st.data())
@settings(max_examples=60)
def test_the_edge_that_allows_last_decides(made: Frames, data: st.DataObject) -> None:
    graph = made.graph
    count = len(graph.edges)
    preferred = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    columns = graph.in_offsets, graph.in_edges, graph.edges.source, graph.edges.lag
    edge, later = deciding(*columns, preferred, graph.time)
    rows = oracles.edges_of(graph)
    for vertex in range(graph.vertex_count):
        into = [
            (graph.time[source] + lag, preferred[row], -row)
            for row, (source, target, lag) in enumerate(rows)
            if target == vertex
        ]
        if not into:
            assert (edge[vertex], later[vertex]) == (-1, 0)
            continue
        latest = max(into)
        assert (edge[vertex], later[vertex]) == (-latest[2], graph.time[vertex] - latest[0])


OFFSETS, TARGETS = np.array([0, 2, 3, 4, 4]), np.array([1, 2, 3, 3], np.int32)
"""0 → 1 → 3 and 0 → 2 → 3."""
IN_OFFSETS, IN_SOURCES = np.array([0, 0, 1, 2, 4]), np.array([0, 0, 1, 2], np.int32)
ORDER, NO_GAP = np.arange(4, dtype=np.int32), np.zeros(4, np.int64)
PATH = np.array([0, 1, 3])
"""The longest, with lags of 10 and 5; the other way takes 4 and 7."""
LAGS = np.array([10, 4, 5, 7])


def test_each_vertex_knows_the_last_of_the_path_that_reaches_it() -> None:
    assert traverse.last_on_path(ORDER, IN_OFFSETS, IN_SOURCES, PATH).tolist() == [0, 1, 0, 2]


def test_without_an_edge_of_the_path_the_job_ends_when_the_other_way_does() -> None:
    label, time, late = np.array([0, 1, 0, 2]), np.array([0, 10, 4, 15]), np.array([0, 10, 8, 15])
    best = traverse.avoiding(PATH, label, OFFSETS, TARGETS, LAGS, NO_GAP, time, late, 15)
    assert best.tolist() == [11, 11]


def test_a_detour_leaves_the_path_and_returns_with_enough_work() -> None:
    before, sources, weight = np.array([-1, 0, 1, 2]), np.array([0, 0, 1, 2]), np.array([0, 10, 4, 5])
    on_path = np.array([True, True, False, True])
    for least, expected in ((11, [0]), (12, [])):
        chosen = traverse.detours(before, sources, weight, on_path, np.array([2]), np.array([7]), least, 5)
        assert chosen.tolist() == expected


@given(st.lists(st.tuples(st.integers(-1, 30), st.booleans()), min_size=1, max_size=30), st.data())
@settings(max_examples=60)
def test_climbing_compiled_and_level_by_level_are_the_same(forest: list[tuple[int, bool]], data: st.DataObject) -> None:
    above = np.array([min(parent, i - 1) for i, (parent, _) in enumerate(forest)], np.int64)
    wanted = np.array([each for _, each in forest], np.bool_)
    rows = np.array(data.draw(st.lists(st.integers(-1, len(forest) - 1), max_size=10)), np.int64)
    assert climb(above, wanted, rows, len(above)).tolist() == nearest(above, wanted, rows).tolist()
