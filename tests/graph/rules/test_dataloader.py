from __future__ import annotations

from htagraph import EdgeKind, GapKind
from tests.oracles import edges_by_name
from tests.strategies import annotation, load, op

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def test_the_wait_for_a_batch_is_the_loaders_time_and_no_gap() -> None:
    graph = load([op("before", 0, 10), annotation(LOADER, 20, 300), op("after", 330, 10)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [(f"{LOADER}.start", f"{LOADER}.end", 300)]
    assert {GapKind(kind).label for kind in graph.gap_kind[graph.gap > 0]} == {"host_untraced"}
    assert graph.gap.sum() == 20_000


def test_a_loader_that_is_written_as_an_operator_is_one_too() -> None:
    graph = load([op(LOADER, 20, 300)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [(f"{LOADER}.start", f"{LOADER}.end", 300)]


def test_operators_inside_keep_their_own_time() -> None:
    graph = load([annotation(LOADER, 0, 100), op("aten::stack", 40, 50)])
    assert edges_by_name(graph, EdgeKind.DATALOADER) == [
        ("aten::stack.end", f"{LOADER}.end", 10),
        (f"{LOADER}.start", "aten::stack.start", 40),
    ]
    assert ("aten::stack.start", "aten::stack.end", 50) in edges_by_name(graph, EdgeKind.BODY)
