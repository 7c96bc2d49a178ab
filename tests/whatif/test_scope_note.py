"""How much time a name stands for is said where the name is used."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.scenario import Scenario
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return load([
        annotation("phase", 0, 100), op("a", 0, 20), op("b", 5, 10), op("c", 30, 70), launch(40, 10, 1),
        kernel(COMPUTE, 60, 30, 1),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (
            lambda s: s.scale(name="a", factor=0.5),
            "scaled 0.01 ms self time of a, 50 % of the time inside it; op='a' scales everything inside",
        ),
        (
            lambda s: s.remove(name="c"),
            "removed 0.06 ms self time of c, 60 % of the time inside it; op='c' removes everything inside",
        ),
        (
            lambda s: s.set_duration(name="a", ns=5),
            "set 0.01 ms self time of a, 50 % of the time inside it; op='a' sets everything inside",
        ),
        (
            lambda s: s.jitter(sigma=0.1, name="b"),
            "varied 0.01 ms self time of b, 100 % of the time inside it; op='b' varies everything inside",
        ),
        (
            lambda s: s.scale(name="phase", factor=0.5),
            "scaled 0.13 ms: all the time inside phase, kernels launched there included",
        ),
    ],
)
def test_the_note_tells_self_time_from_the_time_inside(graph: DependencyGraph, change: object, note: str) -> None:
    scenario: Scenario = change(hg.what_if(graph))  # type: ignore[operator]
    assert note in scenario.run().notes


def test_a_kernel_or_what_is_inside_an_operator_needs_no_note(graph: DependencyGraph) -> None:
    scenario = hg.what_if(graph)
    assert not scenario.scale(op="a", factor=0.5).run().notes
    assert not scenario.scale(name=COMPUTE, factor=0.5).run().notes
    assert not scenario.scale(kind="op", factor=0.5).run().notes
