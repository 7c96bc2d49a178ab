"""The types, weights and owners of edges, where HTA's tests assert them and where ours differ with reason."""

from __future__ import annotations

from htagraph.hta.critical_path.analysis import (
    CPEdge,
    CPEdgeType,
    CPGraph,
)
from htagraph.hta.critical_path.overlay import is_zero_weight_launch_edge
from tests.hta.critical_path.made import (
    HTA,
    analysed,
    edge_between,
    nodes,
    shared,
)


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
