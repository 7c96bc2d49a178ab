from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings

from htagraph import DependencyGraph, EdgeKind, Provenance
from htagraph.graph import networkx_backend as backend
from htagraph.graph.activities import Edges
from htagraph.graph.networkx_info import get_info
from tests.reach import JOBS, graph_of, label
from tests.strategies import Frames, frames, load, op

SMALL = [path for path in JOBS if path.is_file() and path.stat().st_size < 30_000]

WHOLE: dict[str, Callable[[Any], Any]] = {
    "dag_longest_path": nx.dag_longest_path,
    "dag_longest_path by edges": lambda graph: nx.dag_longest_path(graph, weight="hops"),
    "dag_longest_path by halves": lambda graph: nx.dag_longest_path(graph, weight="hops", default_weight=0.5),
    "dag_longest_path_length": nx.dag_longest_path_length,
    "length by halves": lambda graph: nx.dag_longest_path_length(graph, weight="hops", default_weight=0.5),
    "topological_sort": lambda graph: list(nx.topological_sort(graph)),
    "topological_generations": lambda graph: list(nx.topological_generations(graph)),
    "is_directed_acyclic_graph": nx.is_directed_acyclic_graph,
    "transitive_reduction": lambda graph: (
        set(nx.transitive_reduction(graph).edges)
        if isinstance(graph, nx.DiGraph)
        else {(s, t) for s, t, _ in _edges(nx.transitive_reduction(graph))}
    ),
}
OF_A_NODE: dict[str, Callable[[Any, int], Any]] = {"ancestors": nx.ancestors, "descendants": nx.descendants}

every_function = pytest.mark.parametrize("name", WHOLE)


def _edges(graph: DependencyGraph) -> list[tuple[int, int, int]]:
    edges = graph.edges
    return list(zip(edges.source.tolist(), edges.target.tolist(), edges.lag.tolist(), strict=True))


@pytest.fixture
def unconverted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every conversion between networkx and this package an error."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("converted instead of dispatched")

    monkeypatch.setattr(backend, "convert_to_nx", refuse)
    monkeypatch.setattr(backend, "convert_from_nx", refuse)


@every_function
@given(made=frames())
@settings(deadline=None, max_examples=25)
def test_a_function_gives_on_a_dag_what_networkx_gives(name: str, made: Frames) -> None:
    graph = made.graph
    assert WHOLE[name](graph) == WHOLE[name](graph.to_networkx())


@pytest.mark.parametrize("name", OF_A_NODE)
@given(made=frames())
@settings(deadline=None, max_examples=25)
def test_a_function_of_a_node_gives_what_networkx_gives(name: str, made: Frames) -> None:
    graph = made.graph
    theirs = graph.to_networkx()
    for vertex in range(graph.vertex_count):
        assert OF_A_NODE[name](graph, vertex) == OF_A_NODE[name](theirs, vertex)


@every_function
@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_function_gives_on_a_trace_what_networkx_gives(name: str, path: Path) -> None:
    graph = graph_of(path)
    if name == "transitive_reduction" and graph.vertex_count > 2000:
        pytest.skip("networkx takes minutes")
    assert WHOLE[name](graph) == WHOLE[name](graph.to_networkx())


@every_function
def test_a_function_runs_on_the_graphs_own_arrays(name: str, unconverted: None) -> None:
    WHOLE[name](load([op("a", 0, 1), op("b", 3, 1)]))


@pytest.mark.parametrize("name", OF_A_NODE)
def test_a_function_of_a_node_runs_on_the_graphs_own_arrays(name: str, unconverted: None) -> None:
    OF_A_NODE[name](load([op("a", 0, 1), op("b", 3, 1)]), 1)


@pytest.mark.parametrize("name", OF_A_NODE)
@pytest.mark.parametrize("node", [-1, 4, "x"])
def test_a_node_that_is_not_there_is_an_error_as_in_networkx(name: str, node: Any) -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    for each in (graph, graph.to_networkx()):
        with pytest.raises(nx.NetworkXError, match=r"is not in the (di)?graph"):
            OF_A_NODE[name](each, node)


def test_a_cycle_is_found_as_in_networkx() -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    back = Edges.of(graph.edges.target[:1], graph.edges.source[:1], 0, EdgeKind.USER, Provenance.INFERRED)
    cyclic = graph.replace(edges=Edges.concatenate([graph.edges, back]))
    for each in (cyclic, cyclic.to_networkx()):
        assert not nx.is_directed_acyclic_graph(each)
        with pytest.raises(nx.NetworkXUnfeasible):
            list(nx.topological_sort(each))


def test_an_order_of_ones_own_may_break_ties_but_must_be_whole() -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    order = list(nx.topological_sort(graph.to_networkx()))
    assert nx.dag_longest_path(graph, topo_order=order) == nx.dag_longest_path(graph.to_networkx(), topo_order=order)
    with pytest.raises(nx.NetworkXError, match="topo_order"):
        nx.dag_longest_path(graph, topo_order=order[1:])


def test_nodes_and_edges_carry_what_they_mean() -> None:
    graph = load({3: [op("a", 0, 1), op("b", 3, 1)]}).to_networkx()
    assert graph.nodes[2]["name"] == "b"
    assert graph.nodes[2]["rank"] == 3
    assert graph.edges[0, 1] == {"weight": 1000, "kind": "body", "provenance": "order"}


def test_a_graph_of_networkx_has_no_times_to_become_ours() -> None:
    with pytest.raises(NotImplementedError, match="from_frames"):
        backend.convert_from_nx(nx.DiGraph())


def test_the_backend_names_each_of_its_functions() -> None:
    functions = set(backend.__all__) - {"convert_from_nx", "convert_to_nx"}
    assert set(get_info()["functions"]) == functions  # type: ignore[call-overload]
