"""Host time that no event covers."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.untraced import untraced_gaps
from tests.strategies import annotation, complete, load, op, step


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    """Steps with `a`, 3 µs of nothing, `b`, and in `phase` 20 µs of nothing before `c`."""
    events = []
    for number, start in ((1, 0), (2, 50)):
        events += [step(number, start, 50), op("a", start, 5), op("b", start + 8, 12)]
        events += [annotation("phase", start + 20, 30), op("c", start + 40, 10)]
    return load(events)


def _us(graph: DependencyGraph, **criteria: object) -> list[int]:
    return (graph.gap[untraced_gaps(graph, dict(criteria))] // 1000).tolist()


def test_the_gaps_between_operators_are_selected_by_what_is_around_them(graph: DependencyGraph) -> None:
    assert _us(graph) == [3, 20, 3, 20]
    assert _us(graph, step=2) == [3, 20]
    assert _us(graph, op="phase") == [20, 20]
    assert _us(graph, after="a", step=1) == [3]
    assert _us(graph, before="c", rank=0) == [20, 20]
    assert _us(graph, min_us=4) == [20, 20]
    assert _us(graph, max_us=4) == [3, 3]


def test_a_change_takes_it_as_a_kind(graph: DependencyGraph) -> None:
    scenario = hg.what_if(graph)
    outcome = scenario.scale(kind="untraced", before="c", factor=0.5).run()
    assert outcome.saved_ns == 20_000
    assert outcome.notes == ("scaled 0.04 ms of untraced host time between activities (2 gaps)",)
    assert scenario.remove(kind="untraced").run().saved_ns == 46_000
    assert scenario.scale(kind=("untraced", "op"), factor=0).run().makespan_ns == 0


def test_what_meets_no_gap_is_an_error(graph: DependencyGraph) -> None:
    with pytest.raises(SelectionError, match="the longest gap is 20 µs, before 'c'"):
        untraced_gaps(graph, {"min_us": 30})
    with pytest.raises(SelectionError, match="'stream' is no criterion of untraced time"):
        untraced_gaps(graph, {"stream": 7})
    frames = [complete("python_function", "f", 0, 10), op("a", 0, 5), op("b", 5, 5)]
    with pytest.raises(SelectionError, match="kind='python' has that time"):
        untraced_gaps(load(frames), {})
