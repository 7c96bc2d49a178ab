"""Recorded waits between nodes of CUDA graphs: edges by id in place of guesses."""

from __future__ import annotations

import numpy as np

from htagraph import DependencyGraph
from htagraph.core.kinds import EdgeKind, Provenance
from tests.strategies import Json, load, runtime
from tests.trace.kineto.test_node_flows import FIRST, flow, node


def graph_of(*, recorded: bool) -> DependencyGraph:
    """Return eight launches of a graph on two streams, of which one kernel starts just when an unrelated one ends."""
    events: list[Json] = []
    for number in range(8):
        at = 100 * number
        a, b, c = (
            node("a", at + 20, at + 30, 1, 1, number + 1), node("b", at + 30, at + 40, 2, 2, number + 1),
            node("c", at + 31, at + 45, 1, 3, number + 1),
        )  # fmt: skip
        events += [runtime("cudaGraphLaunch", at + 1, 5, number + 1), a, b, c]
        events += flow(FIRST + number, a, c) if recorded else []
    return load(events)


def waits(graph: DependencyGraph) -> set[tuple[str, str, int]]:
    names = np.array(graph.names, object)[graph.activities.name]
    rows = np.flatnonzero(np.isin(graph.edges.kind, (EdgeKind.EVENT_WAIT, EdgeKind.STREAM)))
    same = (
        graph.activities.cause[graph.edges.source[rows] // 2] == graph.activities.cause[graph.edges.target[rows] // 2]
    )
    edges = graph.edges.take(rows[same])
    ends = zip(names[edges.source // 2], names[edges.target // 2], edges.provenance.tolist(), strict=True)
    return set(ends)


def test_recorded_waits_take_the_place_of_guesses() -> None:
    assert ("a", "b", Provenance.INFERRED) in waits(graph_of(recorded=False))
    recorded = graph_of(recorded=True)
    assert waits(recorded) == {("a", "c", Provenance.OBSERVED)}
    recorded.check()


def test_a_recorded_wait_is_certain_where_the_order_of_the_stream_says_it_too() -> None:
    graph = graph_of(recorded=True)
    by_id = graph.edges.take((graph.edges.kind == EdgeKind.STREAM) & (graph.edges.provenance == Provenance.OBSERVED))
    assert len(by_id) == 8
    assert (by_id.confidence == 100).all()
