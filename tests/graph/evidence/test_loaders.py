"""Which stretches of a thread are a data loader's own."""

from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.core.kinds import EdgeKind
from tests.strategies import Json, annotation, complete, load, op

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def function(name: str, start: float, duration: float) -> Json:
    return complete("python_function", name, start, duration)


def owners(graph: hg.DependencyGraph, kind: EdgeKind) -> dict[str, int]:
    """Return the time, µs, of the edges of a kind by the activity that they belong to."""
    edges = graph.edges
    chosen = (edges.kind == kind) & (edges.lag > 0)
    names = [graph.names[graph.activities.name[each]] for each in edges.activity[chosen]]
    return {name: int(edges.lag[chosen][np.array(names) == name].sum()) // 1000 for name in names}


def test_a_function_around_the_loader_keeps_only_what_is_outside_it() -> None:
    graph = load([function("a.py(1): train", 0, 100), annotation(LOADER, 10, 50), op("aten::stack", 20, 15)])
    assert owners(graph, EdgeKind.DATALOADER) == {LOADER: 35}
    assert owners(graph, EdgeKind.BODY) == {"a.py(1): train": 50, "aten::stack": 15}


def test_a_function_inside_the_loader_keeps_its_own_time() -> None:
    graph = load([annotation(LOADER, 10, 50), function("d.py(1): fetch", 20, 30), op("aten::stack", 25, 5)])
    assert owners(graph, EdgeKind.DATALOADER) == {LOADER: 20}
    assert owners(graph, EdgeKind.BODY) == {"d.py(1): fetch": 25, "aten::stack": 5}


def test_without_a_loader_nothing_is_its_time() -> None:
    graph = load([function("a.py(1): train", 0, 100), annotation("other", 10, 50)])
    assert owners(graph, EdgeKind.DATALOADER) == {}
    assert owners(graph, EdgeKind.BODY) == {"a.py(1): train": 100}
