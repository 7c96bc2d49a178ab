"""All of networkx takes the view of a graph, and gives what it gives for a copy of Python objects."""

from __future__ import annotations

import copy
import io
import json
import pickle
from collections.abc import Callable
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.core.kinds import ActivityKind, Provenance
from htagraph.graph.networkx_view import edge_weights, networkx_view
from tests.reach import DATA, graph_of
from tests.strategies import Frames, frames, load, op

Question = Callable[[nx.DiGraph], Any]
FEW = 60
"""Nodes of the small subgraph, for questions that take networkx a time of squares or cubes."""


def shape(answer: object) -> object:
    """Return an answer in a form that can be compared: graphs as their nodes and edges with attributes."""
    if isinstance(answer, nx.Graph):
        return list(answer.nodes(data=True)), list(answer.edges(data=True))
    return answer


def small(graph: nx.DiGraph) -> nx.DiGraph:
    return graph.subgraph(range(FEW))


def written(writer: Callable[[nx.DiGraph, io.BytesIO], None]) -> Question:
    """Return the question what a writer of networkx writes."""

    def text(graph: nx.DiGraph) -> bytes:
        target = io.BytesIO()
        writer(graph, target)
        return target.getvalue()

    return text


def marked_copy(graph: nx.DiGraph) -> object:
    mine = graph.copy()
    nx.set_node_attributes(mine, 1, "mark")
    mine.remove_node(0)
    mine.add_edge("mine", 1, weight=3)
    return shape(mine)


def layout(graph: nx.DiGraph) -> dict[int, list[float]]:
    return {node: place.tolist() for node, place in nx.spring_layout(small(graph), seed=1, iterations=2).items()}


QUESTIONS: dict[str, Question] = {
    # the graph itself
    "len": len,
    "iteration": list,
    "in": lambda graph: (3 in graph, -1 in graph, 10**9 in graph, "x" in graph, [1] in graph),
    "item": lambda graph: {node: dict(near) for node, near in graph[0].items()},
    "str": str,
    "nodes": lambda graph: list(graph.nodes),
    "nodes with data": lambda graph: list(graph.nodes(data=True)),
    "nodes with names": lambda graph: list(graph.nodes(data="name")),
    "a node": lambda graph: dict(graph.nodes[3]),
    "edges": lambda graph: list(graph.edges),
    "edges with data": lambda graph: list(graph.edges(data=True)),
    "edges with lags": lambda graph: list(graph.edges(data="lag_ns")),
    "an edge": lambda graph: [graph.edges[0, target]["kind"] for target in graph[0]],
    "get_edge_data": lambda graph: (graph.get_edge_data(0, 2), graph.get_edge_data(0, 10**9)),
    "has_edge": lambda graph: (graph.has_edge(0, 2), graph.has_edge(2, 0), graph.has_edge(0, "x")),
    "in_edges": lambda graph: list(graph.in_edges(data=True)),
    "adj": lambda graph: {node: dict(near) for node, near in graph.adj.items()},
    "succ": lambda graph: {node: list(near) for node, near in graph.succ.items()},
    "pred": lambda graph: {node: dict(near) for node, near in graph.pred.items()},
    "successors": lambda graph: list(graph.successors(4)),
    "predecessors": lambda graph: list(graph.predecessors(4)),
    "degree": lambda graph: dict(graph.degree),
    "in_degree": lambda graph: dict(graph.in_degree),
    "weighted out_degree": lambda graph: dict(graph.out_degree(weight="lag_ns")),
    "number_of_edges": lambda graph: (graph.number_of_edges(), graph.number_of_edges(0, 2)),
    "size": lambda graph: graph.size(weight="weight"),
    "nbunch_iter": lambda graph: list(graph.nbunch_iter([1, 2, 10**9])),
    # other graphs from the graph
    "DiGraph": lambda graph: shape(nx.DiGraph(graph)),
    "MultiDiGraph": lambda graph: shape(nx.MultiDiGraph(graph)),
    "copy": lambda graph: shape(graph.copy()),
    "deepcopy": lambda graph: shape(copy.deepcopy(small(graph).copy())),
    "pickle": lambda graph: shape(pickle.loads(pickle.dumps(small(graph).copy()))),
    "changes of a copy": marked_copy,
    "subgraph": lambda graph: shape(small(graph)),
    "edge_subgraph": lambda graph: shape(graph.edge_subgraph(islice(graph.edges, FEW))),
    "reverse": lambda graph: shape(graph.reverse()),
    "reverse view": lambda graph: shape(graph.reverse(copy=False)),
    "to_undirected": lambda graph: shape(graph.to_undirected()),
    "to_directed": lambda graph: shape(graph.to_directed()),
    "subgraph_view": lambda graph: shape(nx.subgraph_view(graph, filter_node=lambda node: node % 2 == 0)),
    "compose": lambda graph: shape(nx.compose(graph, nx.DiGraph([("mine", 1)]))),
    "relabel_nodes": lambda graph: shape(nx.relabel_nodes(graph, str)),
    "transitive_reduction": lambda graph: shape(nx.transitive_reduction(small(graph))),
    "transitive_closure": lambda graph: shape(nx.transitive_closure(small(graph))),
    "bfs_tree": lambda graph: shape(nx.bfs_tree(graph, 0)),
    "condensation": lambda graph: shape(nx.condensation(small(graph))),
    "quotient_graph": lambda graph: len(nx.quotient_graph(small(graph), lambda a, b: a // 2 == b // 2)),
    # what algorithms say
    "topological_sort": lambda graph: list(nx.topological_sort(graph)),
    "lexicographical_topological_sort": lambda graph: list(nx.lexicographical_topological_sort(graph)),
    "is_directed_acyclic_graph": nx.is_directed_acyclic_graph,
    "dag_longest_path": nx.dag_longest_path,
    "dag_longest_path by lags": lambda graph: nx.dag_longest_path_length(graph, weight="lag_ns"),
    "ancestors": lambda graph: nx.ancestors(graph, len(graph) - 1),
    "descendants": lambda graph: nx.descendants(graph, 0),
    "shortest_path": lambda graph: nx.shortest_path(graph, 0, 1),
    "dijkstra_path": lambda graph: nx.dijkstra_path(graph, 0, 1, weight="lag_ns"),
    "has_path": lambda graph: (nx.has_path(graph, 0, 1), nx.has_path(graph, 1, 0)),
    "all_simple_paths": lambda graph: list(islice(nx.all_simple_paths(graph, 0, 1, cutoff=8), 3)),
    "dfs_edges": lambda graph: list(nx.dfs_edges(graph, 0)),
    "weakly_connected_components": lambda graph: list(nx.weakly_connected_components(graph)),
    "strongly_connected_components": lambda graph: nx.number_strongly_connected_components(graph),
    "edge_boundary": lambda graph: list(nx.edge_boundary(graph, range(FEW), data="kind")),
    "node_boundary": lambda graph: nx.node_boundary(graph, range(FEW)),
    "antichains": lambda graph: list(islice(nx.antichains(small(graph)), FEW)),
    "immediate_dominators": lambda graph: nx.immediate_dominators(graph, 0),
    "degree_centrality": nx.degree_centrality,
    "betweenness_centrality": lambda graph: nx.betweenness_centrality(small(graph)),
    "max_weight_matching": lambda graph: nx.max_weight_matching(small(graph).to_undirected(), weight="lag_ns"),
    "maximum_flow": lambda graph: nx.maximum_flow_value(small(graph), 0, 1, capacity="lag_ns"),
    "spring_layout": layout,
    # what leaves networkx
    "to_pandas_edgelist": lambda graph: nx.to_pandas_edgelist(graph).to_dict("list"),
    "to_numpy_array": lambda graph: nx.to_numpy_array(small(graph), weight="lag_ns").tolist(),
    "to_dict_of_lists": nx.to_dict_of_lists,
    "node_link_data": lambda graph: json.dumps(nx.node_link_data(graph, edges="links")),
    "adjacency_data": lambda graph: json.dumps(nx.adjacency_data(graph)),
    "write_graphml": written(nx.write_graphml),
    "write_gml": written(lambda graph, file: nx.write_gml(small(graph), file, stringizer=str)),
    "write_edgelist": written(nx.write_edgelist),
    "generate_network_text": lambda graph: list(nx.generate_network_text(small(graph))),
    "write_gexf": written(nx.write_gexf),
}
WITH_SCIPY: dict[str, Question] = {
    "pagerank": nx.pagerank,
    "to_scipy_sparse_array": lambda graph: nx.to_scipy_sparse_array(graph).toarray().tolist(),
}


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return hg.load(DATA / "demo", ranks=[0])


@pytest.fixture(scope="module")
def view(graph: DependencyGraph) -> nx.DiGraph:
    return graph.as_networkx()


@pytest.fixture(scope="module")
def plain(graph: DependencyGraph) -> nx.DiGraph:
    """Return the oracle: a graph that was made node by node, edge by edge, from the columns."""
    made = nx.DiGraph()
    acts = graph.activities
    for vertex in range(graph.vertex_count):
        row = vertex // 2
        made.add_node(
            vertex, activity=row, moment="end" if vertex % 2 else "start", name=graph.names[acts.name[row]],
            kind=ActivityKind(acts.kind[row]).label, rank=int(acts.rank[row]), lane=graph.lane_of(row).label,
            step=int(acts.step[row]), time_ns=int(graph.time[vertex]), gap_ns=int(graph.gap[vertex]),
        )  # fmt: skip
    edges, weights = graph.edges, edge_weights(graph).tolist()
    for edge, weight in enumerate(weights):
        source, target = int(edges.source[edge]), int(edges.target[edge])
        made.add_edge(
            source, target, weight=weight, lag_ns=int(edges.lag[edge]), kind=EdgeKind(edges.kind[edge]).label,
            provenance=Provenance(edges.provenance[edge]).label, confidence_percent=int(edges.confidence[edge]),
            binds=int(graph.binding[target]) == edge,
        )  # fmt: skip
    return made


@pytest.mark.parametrize("name", QUESTIONS)
def test_networkx_gives_for_the_view_what_it_gives_for_a_plain_graph(
    name: str, view: nx.DiGraph, plain: nx.DiGraph
) -> None:
    assert QUESTIONS[name](view) == QUESTIONS[name](plain)


@pytest.mark.parametrize("name", WITH_SCIPY)
def test_networkx_with_scipy_gives_for_the_view_what_it_gives_for_a_plain_graph(
    name: str, view: nx.DiGraph, plain: nx.DiGraph
) -> None:
    pytest.importorskip("scipy")
    assert WITH_SCIPY[name](view) == WITH_SCIPY[name](plain)


@given(made=frames())
@settings(max_examples=25)
def test_every_table_of_a_view_is_that_of_its_copy(made: Frames) -> None:
    view = made.graph.as_networkx()
    plain = made.graph.to_networkx()
    assert dict(view.nodes(data=True)) == dict(plain.nodes(data=True))
    assert list(view.edges(data=True)) == list(plain.edges(data=True))
    assert {node: dict(near) for node, near in view.pred.items()} == {
        node: dict(near) for node, near in plain.pred.items()
    }
    assert all(view.has_edge(u, v) == plain.has_edge(u, v) for u in plain for v in plain)


@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.add_node(1),
        lambda view: view.add_edge(0, 1),
        lambda view: view.remove_node(0),
        lambda view: view.clear(),
        lambda view: nx.set_node_attributes(view, 1, "mark"),
        lambda view: nx.set_node_attributes(view, {0: {"mark": 1}}),
        lambda view: nx.set_edge_attributes(view, 1, "mark"),
    ],
)
def test_a_view_cannot_be_changed(view: nx.DiGraph, change: Callable[[nx.DiGraph], None]) -> None:
    with pytest.raises(nx.NetworkXError, match="Frozen graph can't be modified"):
        change(view)


def test_a_view_copies_nothing(graph: DependencyGraph) -> None:
    view = networkx_view(graph)
    assert view.adj[0]._atlas.table.neighbours is graph.edges.target
    assert nx.is_frozen(view)
    assert not nx.is_frozen(graph.to_networkx())


def test_a_node_that_is_not_there_is_an_error_of_networkx(view: nx.DiGraph) -> None:
    for node in (-1, len(view), "x"):
        with pytest.raises(nx.NetworkXError, match="not in the digraph"):
            list(view.successors(node))
        with pytest.raises(KeyError):
            view.nodes[node]
        with pytest.raises(KeyError):
            view.edges[0, node]


def test_numbers_of_numpy_are_nodes_too(view: nx.DiGraph, graph: DependencyGraph) -> None:
    vertex = graph.edges.target[0]
    assert isinstance(vertex, np.integer)
    assert view.nodes[vertex] == view.nodes[int(vertex)]
    assert graph.edges.source[0] in view.pred[vertex]


def test_attributes_show_themselves_as_a_dict() -> None:
    view = load({3: [op("a", 0, 1), op("b", 3, 1)]}).as_networkx()
    assert repr(view.edges[0, 1]) == (
        "{'weight': 1000, 'lag_ns': 1000, 'kind': 'body', 'provenance': 'order', 'confidence_percent': 100, "
        "'binds': True}"
    )
    assert view.nodes[3]["activity"] == 1
    assert view.nodes[3]["moment"] == "end"
    assert len(view.nodes[3]) == len(dict(view.nodes[3]))


def test_a_graph_of_other_files_is_itself_again(tmp_path: Any, view: nx.DiGraph) -> None:
    nx.write_graphml(view, tmp_path / "graph.graphml")
    again = nx.read_graphml(tmp_path / "graph.graphml", node_type=int)
    assert dict(again.nodes(data=True)) == {node: dict(data) for node, data in view.nodes(data=True)}
    assert sorted(again.edges) == sorted(view.edges)


def test_a_job_of_several_ranks_is_one_graph() -> None:
    view = graph_of(DATA / "demo").as_networkx()
    assert nx.number_weakly_connected_components(view) == 1
    assert {rank for _, rank in view.nodes(data="rank")} == {-1, 0, 1, 2, 3}
