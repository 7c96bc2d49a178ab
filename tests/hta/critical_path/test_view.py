"""Which events are nodes of a window."""

from __future__ import annotations

from tests.hta.critical_path.made import (
    ALEXNET,
    HTA,
    MEASURE,
    analysed,
    shared,
)


@shared
def test_all_kernels_of_a_cuda_graph_are_nodes() -> None:
    """HTA keeps one per launch: 17 564 nodes (D13)."""
    graph = analysed(HTA / "trace_diff" / "test" / "test.json.gz", "ProfilerStep", 0, rank=1)
    assert len(graph.node_list) == 19_242


@shared
def test_nodes_are_in_the_order_of_time_and_then_of_the_file() -> None:
    view = analysed(ALEXNET, MEASURE, 1).parts
    keys = list(zip(view.time.tolist(), view.event.tolist(), strict=True))
    assert keys == sorted(keys)
    assert view.is_start.sum() * 2 == len(view.event), "each event has a start and an end"
