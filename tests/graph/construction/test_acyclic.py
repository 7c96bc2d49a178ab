from __future__ import annotations

from htagraph import EdgeKind
from tests.oracles import edges_by_name
from tests.strategies import MAIN, OTHER, Json, arrow, load, op


def crossed() -> list[Json]:
    """Return two pairs of operators, each of which seems to need what the other thread does later."""
    one, two = op("one", 0, 1, MAIN), op("two", 1, 1, MAIN)
    three, four = op("three", 0, 1, OTHER), op("four", 1, 1, OTHER)
    return [one, two, three, four, *arrow(1, two, three), *arrow(2, four, one)]


def test_dependencies_that_lead_in_a_circle_are_dropped_and_reported() -> None:
    graph = load(crossed())
    graph.check()
    assert edges_by_name(graph, EdgeKind.AUTOGRAD) == []
    assert [(issue.what, issue.count) for issue in graph.issues if issue.what == "cycle_broken"] == [
        ("cycle_broken", 2)
    ]


def test_what_lies_on_no_circle_stays() -> None:
    forward, backward = op("forward", 10, 1, MAIN), op("backward", 12, 1, OTHER)
    graph = load([*crossed(), forward, backward, *arrow(3, forward, backward)])
    assert edges_by_name(graph, EdgeKind.AUTOGRAD) == [("forward.end", "backward.start", 0)]
