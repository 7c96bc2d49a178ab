from __future__ import annotations

import htagraph as hg
from tests.reach import DATA, graph_of
from tests.strategies import load, op

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def test_nobody_waits_for_data() -> None:
    graph = load([op("a", 0, 10), op(LOADER, 10, 30), op("b", 40, 5), op(LOADER, 45, 20), op("c", 65, 5)])
    assert hg.what_if(graph).free_dataloader().run().makespan_ns == 20_000


def test_what_a_loader_does_itself_is_free_too() -> None:
    graph = load([op("a", 0, 10), op(LOADER, 10, 30), op("aten::stack", 15, 20), op("b", 40, 5)])
    assert hg.what_if(graph).free_dataloader().run().makespan_ns == 15_000


def test_by_rank_and_step() -> None:
    graph = graph_of(DATA / "demo")
    some = hg.what_if(graph).free_dataloader(rank=0, step=graph.steps[0]).state.lag
    every = hg.what_if(graph).free_dataloader().state.lag
    assert (every <= some).all()
    owners = graph.edges.activity[some != graph.edges.lag]
    assert set(graph.activities.rank[owners].tolist()) == {0}
    assert set(graph.activities.step[owners].tolist()) == {graph.steps[0]}


def test_host_does_not_mean_waiting_for_data_unless_it_is_named() -> None:
    graph = load([op("a", 0, 10), op(LOADER, 10, 30)])
    assert hg.what_if(graph).scale(factor=0, kind="host").run().saved_ns == 10_000
    assert hg.what_if(graph).scale(factor=0, name=LOADER.replace("[", "?")).run().saved_ns == 30_000
