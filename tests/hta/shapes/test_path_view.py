"""The graph of a window as HTA draws it, and the path of most weight, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.analyzers.critical_path_analysis import CPEdge, CPEdgeType, CPGraph
from htagraph.hta.shapes.path_files import is_zero_weight_launch_edge
from htagraph.hta.shapes.path_view import NOBODY, edge_table, heaviest_path
from tests.hta.critical_paths import ALEXNET, HTA, MEASURE, analysed, edge_between, nodes, shared


@st.composite
def dags(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    count = draw(st.integers(2, 12))
    names = draw(st.permutations(range(count)))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    chosen = draw(st.lists(pairs, min_size=1, max_size=30, unique=True))
    return [(names[u], names[v], draw(st.integers(0, 3))) for u, v in chosen]


@pytest.mark.slow
@given(edges=dags())
def test_the_heaviest_path_is_networkxs_choice_among_equals(edges: list[tuple[int, int, int]]) -> None:
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from(edges)
    source, target, weight = np.array(edges).T
    path = heaviest_path(edge_table(source, target, 0, weight, NOBODY), weight)
    assert path is not None
    assert path.tolist() == nx.dag_longest_path(oracle)


def test_a_cycle_has_no_path() -> None:
    edges = edge_table(np.array([0, 1]), np.array([1, 0]), 0, 1, NOBODY)
    assert heaviest_path(edges, np.ones(2, np.int64)) is None


@shared
def test_stretches_of_operators_belong_to_them(graph: CPGraph) -> None:
    expected = {
        (57, 58): (15, 286),
        (58, 59): (14, 287),
        (59, 60): (17, 1005),
        (60, 61): (15, 287),
        (61, 62): (32, 286),
    }
    for (source, target), (weight, event) in expected.items():
        edge = edge_between(graph, source, target)
        assert edge == CPEdge(source, target, CPEdgeType.OPERATOR_KERNEL, weight)
        assert graph.get_event_attribution_for_edge(edge) == event
    for event in (286, 287, 1005):
        mine = {edge_between(graph, *pair) for pair, (_, owner) in expected.items() if owner == event}
        assert set(graph.get_edges_attributed_to_event(event)) == mine


@shared
def test_launches_pauses_and_synchronizations(graph: CPGraph) -> None:
    launch = edge_between(graph, nodes(graph, 1053)[0], nodes(graph, 1051)[0])
    assert (launch.type, launch.weight) == (CPEdgeType.KERNEL_LAUNCH_DELAY, 27)
    pause = edge_between(graph, nodes(graph, 1051)[1], nodes(graph, 1067)[0])
    assert (pause.type, pause.weight) == (CPEdgeType.KERNEL_KERNEL_DELAY, 7)
    causal = edge_between(graph, nodes(graph, 1069)[0], nodes(graph, 1067)[0])
    assert is_zero_weight_launch_edge(causal)
    sync = edge_between(graph, nodes(graph, 1275)[1], nodes(graph, 1281)[1])
    assert (sync.type, sync.weight) == (CPEdgeType.SYNC_DEPENDENCY, 0)
    assert graph.get_events_for_edge(sync) == (1275, 1281)


@shared
def test_a_query_waits_for_nothing() -> None:
    """HTA: an edge from the kernel of event 33 to the end of cudaEventQuery (event 45)."""
    graph = analysed(HTA / "critical_path" / "cuda_event_sync.json.gz", "ProfilerStep", 0)
    assert not graph.has_edge(nodes(graph, 33)[1], nodes(graph, 45)[1])


@shared
def test_a_copy_that_blocked_its_call_is_what_the_call_waited_for() -> None:
    """HTA lists cudaMemcpyAsync as blocking and counts its 29 µs all the same (D12)."""
    graph = analysed(HTA / "critical_path" / "cuda_event_sync.json.gz", "ProfilerStep", 0)
    start, end = nodes(graph, 25)
    assert edge_between(graph, start, end).weight == 0
    assert edge_between(graph, nodes(graph, 23)[1], end).type == CPEdgeType.SYNC_DEPENDENCY


@pytest.mark.slow
@shared
def test_all_kernels_of_a_cuda_graph_are_nodes() -> None:
    """HTA keeps one per launch: 17 564 nodes (D13)."""
    graph = analysed(HTA / "trace_diff" / "test" / "test.json.gz", "ProfilerStep", 0, rank=1)
    assert len(graph.node_list) == 19_242


@shared
def test_nodes_are_in_the_order_of_time_and_then_of_the_file() -> None:
    nodes = analysed(ALEXNET, MEASURE, 1).parts.nodes
    keys = list(zip(nodes.time.tolist(), nodes.event.tolist(), strict=True))
    assert keys == sorted(keys)
    assert nodes.is_start.sum() * 2 == len(nodes), "each event has a start and an end"
