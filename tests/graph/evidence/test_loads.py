from __future__ import annotations

from htagraph import EdgeKind
from tests.graph.rules.test_dataloader import LOADER, batches
from tests.oracles import edges_by_name
from tests.strategies import Json, annotation, load, op


def test_a_call_that_waited_has_the_time_of_fetching_what_is_ready() -> None:
    graph = batches(40, 0, 40, 40, 0, 40)
    own = graph.edges.lag[graph.edges.kind == EdgeKind.DATALOADER]
    assert sorted(own.tolist())[:-1] == [200_000] * 5, "nothing tells how long the first batch took"
    assert graph.edges.lag[graph.edges.kind == EdgeKind.OUTSIDE].min() > 60_000_000


def test_a_loader_without_workers_has_no_pace() -> None:
    alone = LOADER.replace("MultiProcessing", "SingleProcess")
    events = list[Json]()
    for at in range(0, 400_000, 100_000):
        events += [annotation(alone, at, 9_000), op("a", at + 9_010, 9)]
    graph = load(events)
    assert not edges_by_name(graph, EdgeKind.OUTSIDE)
    assert len(edges_by_name(graph, EdgeKind.DATALOADER)) == 4
