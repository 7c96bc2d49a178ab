"""What autograd ran for a part of the forward pass."""

from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.graph.backward import backward_of
from tests.strategies import annotation, arrow, kernel, launch, load, op

ENGINE = "autograd::engine::evaluate_function: "
AUTOGRAD = 2
"""Thread of the autograd engine."""


def trained() -> hg.DependencyGraph:
    """Return a job of two layers, each with an operator forward and one, with a kernel, backward."""
    forward = [op("first", 1, 8), op("second", 11, 8)]
    backward = [op("SecondBackward0", 31, 8, AUTOGRAD), op("FirstBackward0", 51, 8, AUTOGRAD)]
    events = [
        annotation("head", 0, 10), annotation("tail", 10, 10), *forward,
        op(ENGINE + "SecondBackward0", 30, 10, AUTOGRAD), *backward[:1], launch(32, 4, 1, AUTOGRAD),
        kernel("second_grad", 40, 100, 1), op(ENGINE + "FirstBackward0", 50, 10, AUTOGRAD), *backward[1:],
        *arrow(1, forward[0], backward[1]), *arrow(2, forward[1], backward[0]),
    ]  # fmt: skip
    return load(events)


def named(graph: hg.DependencyGraph, rows: np.ndarray) -> set[str]:
    return {graph.names[name] for name in graph.activities.name[rows]}


def test_the_engine_and_all_inside_belong_to_it() -> None:
    graph = trained()
    forward = np.isin(graph.activities.name, [graph.names.index("tail"), graph.names.index("second")])
    rows = np.flatnonzero(backward_of(graph, forward))
    assert named(graph, rows) == {ENGINE + "SecondBackward0", "SecondBackward0", "cudaLaunchKernel", "second_grad"}


def test_a_selection_asks_for_it_by_the_name_of_a_region() -> None:
    graph = trained()
    assert named(graph, graph.select(backward_of="head").activities) == {ENGINE + "FirstBackward0", "FirstBackward0"}
    assert not len(graph.select(backward_of="nothing").activities)


def test_removing_a_region_says_that_its_backward_stays() -> None:
    scenario = hg.what_if(trained())
    (note,) = [note for note in scenario.remove(op="tail").run().notes if "backward" in note]
    assert "stays (1 operator, " in note
    assert "remove(backward_of='tail')" in note
    both = scenario.remove(op="tail").remove(backward_of="tail").run()
    assert both.makespan_ns < scenario.remove(op="tail").run().makespan_ns
    assert not [note for note in scenario.remove(backward_of="tail").run().notes if "backward pass" in note]
