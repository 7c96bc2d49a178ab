"""What is inside activities: the tree, regions that reach into the next step, and what operators asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htagraph import DependencyGraph
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, of_kinds
from htagraph.graph.inside import asked_at, asked_by, inside
from htagraph.queries.change_scope import activities_of
from htagraph.queries.weights import initial
from tests.reach import DATA, JOBS, graph_of, label
from tests.strategies import load, op

NAMES = 30
SMALL = [path for path in JOBS if path.is_dir() or path.stat().st_size < 30_000]


def names_of(graph: DependencyGraph) -> list[str]:
    """Return names of operators and regions, from the rarest to the most frequent, at most a few."""
    acts = graph.activities
    is_code = of_kinds(acts.kind, (*ANNOTATIONS, ActivityKind.OP))
    names, counts = np.unique(acts.name[is_code], return_counts=True)
    return [graph.names[name] for name in names[np.argsort(counts)]][:: max(1, len(names) // NAMES)]


@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_change_of_op_is_about_what_select_finds_and_the_operator_itself(path: Path) -> None:
    graph = graph_of(path)
    for name in names_of(graph):
        exact = f"[{name[0]}]{name[1:]}" if name[0] in "*?" else name
        named = graph.select(name=exact)
        changed = np.flatnonzero(activities_of(initial(graph), {"op": exact}))
        assert changed.tolist() == (named | graph.select(op=exact)).activities.tolist(), name
        assert len(named.descendants() - graph.select(op=exact)) == 0, name
        assert graph.select(op=named).activities.tolist() == graph.select(op=exact).activities.tolist(), name


def test_communication_on_a_thread_of_its_own_is_inside_the_operator_that_asked_for_it() -> None:
    graph = graph_of(DATA / "gloo_ddp")
    reduces = graph.select(op="c10d::allreduce_", kind="host_communication")
    assert len(reduces) > 0
    asking = graph.edges.source[asked_at(graph, reduces.activities)] >> 1
    assert {graph.names[name] for name in graph.activities.name[asking]} == {"c10d::allreduce_"}
    calls = graph.select(name="c10d::allreduce_")._mask()
    assert np.flatnonzero(asked_by(graph, calls)).tolist() == reduces.activities.tolist()


def test_an_activity_is_not_inside_itself() -> None:
    graph = load([op("a", 0, 9), op("b", 1, 2)])
    assert inside(graph, np.array([True, False])).tolist() == [False, True]
    assert not inside(graph, np.array([False, False])).any()
