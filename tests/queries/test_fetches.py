"""Waits for data loaders, and for what was not recorded, are told apart."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.fetches import fetch_time, is_hidden, loader_time, outside_time, outside_waits
from htagraph.queries.weights import initial
from tests.graph.evidence.test_outside import WORK, learner, paced
from tests.reach import DATA, graph_of
from tests.strategies import annotation, load, op, step

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _total_us(graph: DependencyGraph, **criteria: object) -> int:
    """Return how much the waits add up to, µs."""
    time = loader_time(initial(graph), dict(criteria))
    assert not time.fixed.any()
    return int(graph.edges.lag[time.edges].sum() + graph.gap[time.gaps].sum()) // 1000


def _job() -> DependencyGraph:
    """Two ranks, two steps: rank 0 waits 30 µs in step 1 and 20 µs in step 2, rank 1 twice as long."""
    return load({
        rank: [
            step(1, 0, 100), op("a", 0, 10), op(LOADER, 10, 30 * more), step(2, 100, 100), op(LOADER, 110, 20 * more),
            op("b", 180, 5),
        ]
        for rank, more in ((0, 1), (1, 2))
    })  # fmt: skip


@pytest.mark.parametrize(
    ("criteria", "wanted"),
    [
        ({}, 150), ({"rank": 0}, 50), ({"rank": 1}, 100), ({"step": 1}, 90), ({"rank": [0, 1], "step": 2}, 60),
        ({"rank": None, "step": None}, 150),
    ],
)  # fmt: skip
def test_waits_are_chosen_by_rank_and_step(criteria: dict[str, object], wanted: int) -> None:
    assert _total_us(_job(), **criteria) == wanted


def test_what_a_loader_without_workers_runs_inside_counts_once() -> None:
    graph = load([op("a", 0, 10), op(LOADER, 10, 30), op("aten::stack", 15, 20), op("aten::cat", 16, 5)])
    assert _total_us(graph) == 30


def test_the_host_work_beside_it_does_not_count() -> None:
    graph = graph_of(DATA / "demo")
    time = loader_time(initial(graph), {})
    owners = graph.edges.activity[graph.edges.kind == EdgeKind.DATALOADER]
    loaders = {graph.names[graph.activities.name[owner]] for owner in owners}
    inside = [set(graph.select(op=name.replace("[", "?")).activities.tolist()) for name in loaders]
    allowed = set.union(set(owners.tolist()), *inside)
    assert set(graph.edges.activity[time.edges].tolist()) <= allowed


def test_other_criteria_and_absent_ranks_are_refused() -> None:
    state = initial(_job())
    with pytest.raises(SelectionError, match="selected by rank and step"):
        loader_time(state, {"stream": 7})
    with pytest.raises(SelectionError, match="its ranks: 0, 1"):
        loader_time(state, {"rank": 5})


def test_a_job_without_a_loader_is_told_how_one_is_known() -> None:
    with pytest.raises(SelectionError, match="__next__"):
        loader_time(initial(load([op("a", 0, 10)])), {})


WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def with_workers() -> DependencyGraph:
    """Return a loop that waits for each batch of a loader's workers."""
    events, at = [], 0
    for _ in range(5):
        events += [annotation(WORKERS, at, 40_000), op("compute", at + 40_010, 60_000)]
        at += 100_020
    return load(events)


def test_the_pace_of_a_loaders_workers_is_the_loaders() -> None:
    graph = with_workers()
    assert EdgeKind.OUTSIDE in graph.edges.kind
    assert not len(outside_waits(graph))
    time = loader_time(initial(graph), {})
    assert set(np.flatnonzero(graph.edges.kind == EdgeKind.OUTSIDE)) <= set(time.edges)
    assert not is_hidden(graph, time)
    with pytest.raises(SelectionError, match="outside of the recording"):
        outside_time(initial(graph), {})


def test_the_pace_of_another_process_is_no_loaders() -> None:
    graph = learner(WORK, paced(WORK))
    waits = outside_waits(graph)
    assert set(waits) == set(np.flatnonzero(graph.edges.kind == EdgeKind.OUTSIDE))
    assert outside_time(initial(graph), {}).edges.tolist() == waits.tolist()
    with pytest.raises(SelectionError, match="no waits for a data loader"):
        loader_time(initial(graph), {})
    with pytest.raises(SelectionError, match="selected by rank and step"):
        outside_time(initial(graph), {"stream": 7})


def test_all_that_is_fetched_is_both() -> None:
    for graph in (with_workers(), learner(WORK, paced(WORK)), graph_of(DATA / "demo")):
        edges = set(fetch_time(initial(graph)).edges)
        assert set(outside_waits(graph)) <= edges
        if EdgeKind.DATALOADER in graph.edges.kind:
            assert edges - set(outside_waits(graph)) == set(loader_time(initial(graph), {}).edges)
    assert not len(fetch_time(initial(load([op("a", 0, 10)]))).edges)


def test_a_loader_and_another_process_are_freed_apart() -> None:
    graph = with_workers()
    assert hg.what_if(graph).free_dataloader().run().saved_ns > 0
    with pytest.raises(SelectionError):
        hg.what_if(graph).free_outside()
