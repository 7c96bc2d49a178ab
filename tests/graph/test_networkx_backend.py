from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind, Provenance
from htagraph.graph import networkx_backend as backend
from htagraph.graph.activities import Edges
from tests.reach import DATA, JOBS, graph_of, label
from tests.strategies import Frames, Job, frames, jobs, load, op

SMALL = [path for path in JOBS if path.is_file() and path.stat().st_size < 30_000]

WHOLE: dict[str, Callable[[Any], Any]] = {
    "dag_longest_path": nx.dag_longest_path,
    "dag_longest_path by lags": lambda graph: nx.dag_longest_path(graph, weight="lag_ns"),
    "dag_longest_path by edges": lambda graph: nx.dag_longest_path(graph, weight="hops"),
    "dag_longest_path by halves": lambda graph: nx.dag_longest_path(graph, weight="hops", default_weight=0.5),
    "dag_longest_path_length": nx.dag_longest_path_length,
    "length by lags": lambda graph: nx.dag_longest_path_length(graph, weight="lag_ns"),
    "length by halves": lambda graph: nx.dag_longest_path_length(graph, weight="hops", default_weight=0.5),
    "topological_sort": lambda graph: list(nx.topological_sort(graph)),
    "topological_generations": lambda graph: list(nx.topological_generations(graph)),
    "is_directed_acyclic_graph": nx.is_directed_acyclic_graph,
    "transitive_reduction": lambda graph: set(nx.transitive_reduction(graph).edges),
}
OF_A_NODE: dict[str, Callable[[Any, int], Any]] = {"ancestors": nx.ancestors, "descendants": nx.descendants}

every_function = pytest.mark.parametrize("name", WHOLE)


def refuse_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every run of networkx's own code on a view an error."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("networkx walked the view")

    monkeypatch.setattr(backend, "convert_to_nx", refuse)
    monkeypatch.setattr(backend, "convert_from_nx", refuse)


@pytest.mark.slow
@every_function
@given(made=frames())
@settings(max_examples=25)
def test_a_function_gives_on_a_dag_what_networkx_gives(name: str, made: Frames) -> None:
    graph = made.graph
    assert WHOLE[name](graph) == WHOLE[name](graph.to_networkx())


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_A_NODE)
@given(made=frames())
@settings(max_examples=25)
def test_a_function_of_a_node_gives_what_networkx_gives(name: str, made: Frames) -> None:
    graph = made.graph
    theirs = graph.to_networkx()
    for vertex in range(graph.vertex_count):
        assert OF_A_NODE[name](graph, vertex) == OF_A_NODE[name](theirs, vertex)


@pytest.mark.slow
@every_function
@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_function_gives_on_a_trace_what_networkx_gives(name: str, path: Path) -> None:
    graph = graph_of(path)
    if name == "transitive_reduction" and graph.vertex_count > 2000:
        pytest.skip("networkx takes minutes")
    assert WHOLE[name](graph) == WHOLE[name](graph.to_networkx())


@every_function
def test_a_function_runs_on_the_graphs_own_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    expected = WHOLE[name](graph.to_networkx())
    refuse_networkx(monkeypatch)
    assert WHOLE[name](graph) == expected


@pytest.mark.parametrize("name", OF_A_NODE)
def test_a_function_of_a_node_runs_on_the_graphs_own_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    expected = OF_A_NODE[name](graph.to_networkx(), 1)
    refuse_networkx(monkeypatch)
    assert OF_A_NODE[name](graph, 1) == expected


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
    assert graph.nodes[2]["gap_ns"] == 2000, "nothing was recorded between a and b"
    known = {"provenance": "order", "confidence_percent": 100, "binds": True}
    assert graph.edges[0, 1] == {"weight": 1000, "lag_ns": 1000, "kind": "body", **known}
    assert graph.edges[1, 2] == {"weight": 2000, "lag_ns": 0, "kind": "host_order", **known}


def test_the_time_before_a_head_counts_on_the_edges_that_leave_it() -> None:
    acts = pd.DataFrame({"duration_ns": [1, 5], "start_ns": [10, 17], "lane": ["a", "b"]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [], "target": []}))
    assert [weight for *_, weight in graph.to_networkx().edges(data="weight")] == [1, 7 + 5]
    assert nx.dag_longest_path(graph) == [2, 3]
    assert nx.dag_longest_path_length(graph) == 12


def _length_by_definition(graph: DependencyGraph) -> dict[int, int]:
    """Return the recorded time since the start of the job of each vertex that has a predecessor, ns."""
    targets = set(graph.edges.target.tolist())
    return {vertex: int(graph.time[vertex]) - graph.origin_ns for vertex in targets}


@given(made=frames())
@settings(max_examples=60)
def test_the_longest_path_to_any_vertex_is_its_recorded_time(made: Frames) -> None:
    graph = made.graph
    theirs = graph.to_networkx()
    longest = dict.fromkeys(theirs, 0)
    for vertex in nx.topological_sort(theirs):
        into = theirs.in_edges(vertex, data="weight")
        longest[vertex] = max([0, *(longest[source] + weight for source, _, weight in into)])
    assert {vertex: longest[vertex] for vertex in _length_by_definition(graph)} == _length_by_definition(graph)


@given(jobs())
@settings(max_examples=20)
def test_the_longest_path_of_a_generated_job_is_as_long_as_its_makespan(job: Job) -> None:
    graph = load(job)
    expected = max(_length_by_definition(graph).values(), default=0)
    assert nx.dag_longest_path_length(graph) == nx.dag_longest_path_length(graph.to_networkx()) == expected


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_the_longest_path_of_a_trace_is_as_long_as_its_makespan(path: Path) -> None:
    graph = graph_of(path)
    assert nx.dag_longest_path_length(graph) == np.ptp(graph.time)
    if graph.awake.all():  # `critical_path` leaves out threads that only sleep
        assert nx.dag_longest_path_length(graph) == hg.critical_path(graph).makespan_ns
    assert nx.dag_longest_path_length(graph, weight="lag_ns") <= np.ptp(graph.time)
    assert graph.time[nx.dag_longest_path(graph)[-1]] == graph.time.max()


def test_lags_alone_leave_out_the_gaps() -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    assert nx.dag_longest_path_length(graph, weight="lag_ns") == 2_000
    assert nx.dag_longest_path_length(graph) == 4_000
    gloo = graph_of(DATA / "gloo_ddp")
    assert 0.85 < nx.dag_longest_path_length(gloo, weight="lag_ns") / np.ptp(gloo.time) < 0.95


def test_a_graph_of_networkx_has_no_times_to_become_ours() -> None:
    with pytest.raises(NotImplementedError, match="from_frames"):
        backend.convert_from_nx(nx.DiGraph())


REST: dict[str, Callable[[Any], Any]] = {
    "shortest_path": lambda graph: nx.shortest_path(graph, 0, 3),
    "weakly_connected_components": lambda graph: list(nx.weakly_connected_components(graph)),
    "degree_centrality": nx.degree_centrality,
    "to_pandas_edgelist": lambda graph: nx.to_pandas_edgelist(graph).to_dict("list"),
    "reverse": lambda graph: list(nx.reverse(graph).edges(data=True)),
    "compose_all": lambda graph: list(nx.compose_all([graph, graph]).edges(data=True)),
}


@pytest.mark.parametrize("name", REST)
def test_what_no_array_function_answers_runs_on_the_view(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    expected = REST[name](graph.to_networkx())
    monkeypatch.setattr(DependencyGraph, "to_networkx", lambda _: pytest.fail("copied"))
    assert REST[name](graph) == expected


def test_a_result_that_is_a_graph_is_one_of_networkx() -> None:
    graph = load([op("a", 0, 1), op("b", 3, 1)])
    assert isinstance(nx.transitive_reduction(graph), nx.DiGraph)
