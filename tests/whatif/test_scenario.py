from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import State
from htagraph.whatif import changes
from htagraph.whatif.scenario import Scenario
from tests.reach import DATA, JOBS, LARGE_BYTES, graph_of, label


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return graph_of(DATA / "demo")


CHANGES = sorted(path.stem for path in Path(changes.__path__[0]).glob("[!_]*.py"))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_a_function_of_its_modules_name_and_a_method(name: str) -> None:
    function = getattr(importlib.import_module(f"htagraph.whatif.changes.{name}"), name)
    method = getattr(Scenario, name)
    assert "scenario" in (inspect.getdoc(method) or "")
    assert "state:" not in (inspect.getdoc(method) or "")
    parameters = list(inspect.signature(function).parameters.values())[1:]
    offered = inspect.signature(method).parameters
    for parameter in parameters:
        assert parameter.name in offered, f"Scenario.{name} lacks {parameter.name}"
        assert offered[parameter.name].default == parameter.default


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_has_a_test(name: str) -> None:
    tests = Path(__file__).parent / "changes"
    assert any(f"{name}(" in path.read_text(encoding="utf-8") for path in tests.glob("test_*.py")), name


def test_changes_apply_left_to_right(graph: DependencyGraph) -> None:
    half = hg.what_if(graph).set_duration(ns=1000, name="*gemm*").scale(factor=2, name="*gemm*").run()
    kernels = graph.select(name="*gemm*", kind="computation").activities
    assert (half.graph.activities.duration[kernels] == 2000).all()
    kept = hg.what_if(graph).scale(factor=2, name="*gemm*").set_duration(ns=1000, name="*gemm*").run()
    assert (kept.graph.activities.duration[kernels] == 1000).all()


def test_a_scenario_never_changes(graph: DependencyGraph) -> None:
    start = hg.what_if(graph)
    first = start.scale(factor=0.5, kind="computation")
    before = first.run().makespan_ns
    first.scale(factor=0.5, kind="computation").no_launch_overhead()
    assert first.run().makespan_ns == before
    assert start.run().makespan_ns == start.run().baseline_ns
    with pytest.raises(AttributeError):
        first.changes = ()  # type: ignore[misc]


def test_it_says_what_was_changed(graph: DependencyGraph) -> None:
    scenario = hg.what_if(graph).scale(factor=0.5, name="*gemm*").infinite_host()
    assert scenario.changes == ("scale(factor=0.5, name='*gemm*')", "infinite_host()")
    assert repr(scenario) == "Scenario(scale(factor=0.5, name='*gemm*') · infinite_host())"
    assert repr(hg.what_if(graph)) == "Scenario(nothing changed)"
    assert "infinite_host()" in repr(scenario.run())


def test_a_change_of_ones_own(graph: DependencyGraph) -> None:
    def late(state: State, *, by_ns: int) -> State:
        return State(state.graph, state.lag, state.gap, state.head + by_ns)

    outcome = hg.what_if(graph).apply(late, by_ns=5).run()
    assert outcome.changes == ("late(by_ns=5)",)
    assert np.array_equal(outcome.time, graph.time + 5)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("scale", {"factor": 0.5, "name": "*gmm*"}, "gemm"),
        ("scale", {"factor": -1}, "at least 0"),
        ("scale", {"factor": 0.5, "rank": 7}, "its ranks: 0, 1, 2, 3"),
        ("scale", {"factor": 0.5, "kind": "compute"}, "computation"),
        ("set_duration", {"ns": -1, "name": "*gemm*"}, "at least 0"),
        ("remove", {"step": 99}, "its steps"),
    ],
)
def test_errors_come_at_the_call(graph: DependencyGraph, method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        getattr(hg.what_if(graph), method)(**options)


@pytest.mark.parametrize(
    "path", [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES], ids=label
)
def test_nothing_changed_is_exact_and_extremes_are_bounds(path: Path) -> None:
    graph = graph_of(path)
    start = hg.what_if(graph)
    assert np.array_equal(start.run().time, graph.time)
    if not len(graph.activities):
        return
    quick, none = start.scale(factor=0.5).run(), start.scale(factor=0).run()
    assert none.makespan_ns <= quick.makespan_ns <= quick.baseline_ns
    assert (start.infinite_host().run().time <= graph.time).all()
    assert (none.time <= quick.time).all()


def test_a_bound_is_found_by_halving_each_resource() -> None:
    graph = graph_of(next(path for path in JOBS if path.name == "demo"))
    gain = {kind: hg.what_if(graph).scale(factor=0.5, kind=kind).run().saved_ns for kind in ("host", "device")}
    assert max(gain.values()) > 0
    assert hg.what_if(graph).scale(factor=0.5).run().saved_ns >= max(gain.values())
