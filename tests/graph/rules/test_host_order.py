from __future__ import annotations

import pytest
from hypothesis import given, settings

from htagraph import DependencyGraph, EdgeKind
from tests.oracles import edges_by_name
from tests.strategies import MAIN, OTHER, Json, annotation, load, op, traces


def test_a_thread_does_one_operator_after_the_other() -> None:
    graph = load([op("a", 0, 5), op("b", 7, 3)])
    assert edges_by_name(graph, EdgeKind.HOST_ORDER) == [("a.end", "b.start", 0)]
    assert graph.gap.tolist() == [0, 0, 2000, 0]


def test_threads_do_not_wait_for_one_another() -> None:
    graph = load([op("a", 0, 5, MAIN), op("b", 7, 3, OTHER)])
    assert edges_by_name(graph, EdgeKind.HOST_ORDER) == []


def test_time_inside_an_annotation_but_outside_operators_is_nobodys_work() -> None:
    graph = load([annotation("region", 0, 10), op("a", 2, 3)])
    assert edges_by_name(graph, EdgeKind.HOST_ORDER) == [("a.end", "region.end", 0), ("region.start", "a.start", 0)]


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_host_order_and_bodies_form_one_chain_per_thread(events: list[Json]) -> None:
    graph = load(events)
    threads = {graph.lanes.index(lane) for lane in graph.lanes if lane.device < 0}
    recorded = [row for row in range(len(graph.activities)) if graph.activities.event[row] >= 0]
    following: dict[int, int] = {}
    for source, target in chain_edges(graph):
        assert source not in following, "a moment has one successor on its thread"
        following[source] = target
    assert len(set(following.values())) == len(following), "and one predecessor"
    for thread in threads:
        moments = {v for row in recorded if graph.activities.lane[row] == thread for v in (2 * row, 2 * row + 1)}
        first = moments - set(following.values())
        assert len(first) == (1 if moments else 0)
        seen = []
        at: int | None = next(iter(first), None)
        while at is not None:
            seen.append(at)
            at = following.get(at)
        assert set(seen) == moments


def chain_edges(graph: DependencyGraph) -> list[tuple[int, int]]:
    """Return the HOST_ORDER and BODY edges between the recorded moments of threads."""
    acts, edges = graph.activities, graph.edges
    return [
        (int(source), int(target))
        for source, target, kind in zip(edges.source, edges.target, edges.kind, strict=True)
        if kind in (EdgeKind.HOST_ORDER, EdgeKind.BODY)
        and not acts.on_device[source // 2]
        and acts.event[source // 2] >= 0
    ]
