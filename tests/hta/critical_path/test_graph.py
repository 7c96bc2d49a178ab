"""CPGraph: a networkx graph whose tables are filled when they are looked at, and its path."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest

from htagraph.hta.critical_path.analysis import (
    CPEdgeType,
    CPGraph,
    restore_cpgraph,
)
from tests.hta.critical_path.made import (
    ALEXNET,
    MEASURE,
    SIMPLE_ADD,
    analysed,
    nodes,
    shared,
)


@shared
def test_nodes_are_numbered_as_htas(graph: CPGraph) -> None:
    assert [nodes(graph, event) for event in (286, 287, 1005)] == [(57, 62), (58, 61), (59, 60)]
    assert [graph._get_node_name(event) for event in (286, 1005)] == ["aten::relu_", "cudaLaunchKernel"]
    assert graph.get_nodes_for_event(-999) == (None, None)
    assert graph.node_list[57].idx == 57


@shared
def test_only_stretches_and_pauses_belong_to_events(graph: CPGraph) -> None:
    owned = (CPEdgeType.OPERATOR_KERNEL, CPEdgeType.KERNEL_KERNEL_DELAY)
    for _, _, data in graph.edges(data=True):
        edge = data["object"]
        assert (graph.get_event_attribution_for_edge(edge) is not None) == (edge.type in owned)
        assert data["weight"] == edge.weight >= 0


@shared
def test_the_path_has_htas_length(graph: CPGraph) -> None:
    assert len(graph.critical_path_nodes) == 315
    assert len(graph.critical_path_edges_set) == 314
    assert len(graph.critical_path_events_set) == 159


@shared
def test_it_is_networkxs_path() -> None:
    """Once the tables of networkx are there, it finds the path, and finds the same."""
    for path, annotation, instance in ((SIMPLE_ADD, "", None), (ALEXNET, MEASURE, 0)):
        graph = analysed(path, annotation, instance)
        before = graph.critical_path_nodes
        assert not graph.is_filled
        assert len(graph.edges) == len(graph.parts.edges.source)
        assert graph.critical_path()
        assert graph.is_filled
        assert graph.critical_path_nodes == before
        assert len(graph.critical_path_edges_set) == len(before) - 1


@shared
def test_a_changed_graph_has_another_path(graph: CPGraph, tmp_path: Path) -> None:
    before = graph.critical_path_nodes
    for edge in graph.get_edges_attributed_to_event(1005):
        graph.edges[edge.begin, edge.end]["weight"] += 10_000_000
    assert graph.critical_path()
    restored = restore_cpgraph(graph.save(str(tmp_path / "changed")), None, 0)
    assert restored.critical_path()
    assert restored.critical_path_nodes == graph.critical_path_nodes
    assert {59, 60} <= set(graph.critical_path_nodes)
    assert len(before) == 315


@shared
def test_negative_weights_are_taken_as_0_unless_the_flag_is_strict(
    graph: CPGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.edges[57, 58]["weight"] = -15
    monkeypatch.setenv("CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS", "1")
    assert not graph.critical_path()
    monkeypatch.setenv("CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS", "0")
    with pytest.warns(UserWarning, match="below 0"):
        assert graph.critical_path()
    assert graph.edges[57, 58]["weight"] == 0


def test_a_graph_of_networkx_says_that_it_has_no_events() -> None:
    graph = CPGraph([(0, 1)])
    assert graph.has_edge(0, 1)
    with pytest.raises(ValueError, match="no events"):
        _ = graph.node_list


@shared
def test_tables_are_filled_by_whatever_looks_first() -> None:
    looks: list[Callable[[CPGraph], int]] = [
        lambda graph: len(graph.nodes), len, lambda graph: graph.number_of_edges(), lambda graph: len(graph.pred[62]),
        lambda graph: len(list(nx.topological_sort(graph))), lambda graph: len(graph.copy().nodes),
        lambda graph: len(nx.DiGraph(graph)),
    ]  # fmt: skip
    whole = analysed(SIMPLE_ADD, MEASURE, 1)
    edges = set(whole.edges)
    for look in looks:
        graph = analysed(SIMPLE_ADD, MEASURE, 1)
        assert not graph.is_filled
        assert look(graph)
        assert graph.is_filled
        assert set(graph.edges) == edges
        assert {(u, v) for v, into in graph.pred.items() for u in into} == edges


@shared
def test_a_copy_is_filled_apart() -> None:
    graph = analysed(SIMPLE_ADD, MEASURE, 1)
    twin = copy.deepcopy(graph)
    twin.remove_node(62)
    assert not graph.is_filled
    assert 62 in graph.nodes
