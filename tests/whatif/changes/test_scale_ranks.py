from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.simulate import simulate
from htagraph.whatif.links import transfers
from tests.whatif.changes.simulated import recorded, small


def test_as_many_ranks_as_there_are_change_nothing() -> None:
    graph, _ = recorded(small("communication_bound"))
    outcome = hg.what_if(graph).scale_ranks(2).run()
    assert np.array_equal(outcome.time, graph.time)
    assert outcome.notes[0].startswith("extrapolation: 2 ranks → 2")


def test_more_ranks_take_longer() -> None:
    graph, _ = recorded(small("communication_bound"))
    makespans = [hg.what_if(graph).scale_ranks(n).run().makespan_ns for n in (2, 4, 16, 128)]
    assert makespans == sorted(makespans)
    assert makespans[-1] > makespans[0]


@pytest.mark.slow
def test_only_groups_asked_for_grow() -> None:
    job = small("tensor").model_copy(update={"tp": 2, "ranks": 4})
    graph, _ = recorded(job)
    found = transfers(hg.what_if(graph).state)
    groups = np.array(found.matches.group)
    data_parallel = np.array(["dp" in group for group in groups])[found.collective]
    outcome = hg.what_if(graph).scale_ranks(64, groups="*dp*").run()
    lag = outcome.state.lag
    assert np.array_equal(lag[found.edges[~data_parallel]], graph.edges.lag[found.edges[~data_parallel]])
    assert (lag[found.edges[data_parallel]] > graph.edges.lag[found.edges[data_parallel]]).any()
    assert len(outcome.notes) == 1
    assert "groups=" in hg.what_if(graph).scale_ranks(64).run().notes[1]


@pytest.mark.slow
def test_late_ranks_are_drawn_from_the_spread_of_arrivals() -> None:
    calm, _ = recorded(small("gpu_bound").model_copy(update={"ranks": 4, "jitter": 0.0}))
    noisy, _ = recorded(small("gpu_bound").model_copy(update={"ranks": 4, "jitter": 0.1}))
    grown = [hg.what_if(graph).scale_ranks(64) for graph in (calm, noisy)]
    extra = [int((scenario.state.gap - scenario.graph.gap).sum()) for scenario in grown]
    assert extra[1] > 10 * max(extra[0], 0)


STAGED = {"pp": 2, "ranks": 2, "layers": 8, "microbatches": 8}
TENSOR = {"tp": 2, "ranks": 4}


def graph_of(kind: str, **settings: object) -> DependencyGraph:
    return recorded(small(kind).model_copy(update=settings))[0]


@pytest.mark.parametrize(
    ("kind", "settings", "asked"),
    [
        ("gpu_bound", {}, {"n": 2, "strong": True}),
        ("tensor", TENSOR, {"n": 4}),
        ("tensor", TENSOR, {"data": 2, "tensor": 2, "strong": True}),
        ("gpu_bound", STAGED, {"pipeline": 2, "strong": True}),
        ("gpu_bound", {"ranks": 1}, {"n": 1}),
        ("gpu_bound", {"ranks": 1}, {"tensor": 1, "strong": True}),
    ],
)
def test_the_recorded_layout_changes_nothing(kind: str, settings: dict[str, object], asked: dict[str, Any]) -> None:
    outcome = hg.what_if(graph_of(kind, **settings)).scale_ranks(**asked).run()
    assert np.array_equal(outcome.time, outcome.graph.time)
    assert outcome.mean_step_ns == outcome.baseline_mean_step_ns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "few", "many", "asked", "off"),
    [
        ("communication_bound", {"jitter": 0.05}, {"ranks": 8}, {"n": 8}, 0.01),
        ("communication_bound", {"jitter": 0.05, "data_strategy": "fsdp"}, {"ranks": 4}, {"n": 4}, 0.01),
        ("gpu_bound", {"ranks": 4, "jitter": 0.05}, {"ranks": 8}, {"n": 8}, 0.01),
        ("gpu_bound", STAGED, {"pp": 4, "ranks": 4}, {"pipeline": 4, "strong": True}, 0.02),
        ("communication_bound", STAGED, {"pp": 4, "ranks": 4}, {"pipeline": 4, "strong": True}, 0.06),
        ("tensor", TENSOR, {"ranks": 8}, {"data": 4}, 0.01),
        ("tensor", TENSOR, {"tp": 4, "ranks": 8}, {"tensor": 4}, 0.05),
    ],
)
def test_other_sizes_are_near_the_simulation_of_them(
    kind: str, few: dict[str, object], many: dict[str, object], asked: dict[str, Any], off: float
) -> None:
    job = small(kind).model_copy(update=few)
    outcome = hg.what_if(recorded(job)[0]).scale_ranks(**asked).run()
    truth = simulate(job.model_copy(update=many)).mean_step_ns
    assert outcome.mean_step_ns == pytest.approx(truth, rel=off)
    least, most = (outcome.mean_step_ns * outcome.speedup / each for each in (outcome.high, outcome.low))
    assert 0.99 * least <= truth <= 1.01 * most


@pytest.mark.parametrize(
    ("kind", "settings", "asked", "why"),
    [
        ("gpu_bound", {}, {"n": 4, "data": 4}, "either a number of ranks"),
        ("gpu_bound", {}, {"tensor": 4}, "groups= says it"),
        ("gpu_bound", {}, {"pipeline": 4}, "no messages between stages"),
        ("gpu_bound", STAGED, {"pipeline": 1}, "no more than asked"),
        ("tensor", TENSOR, {"data": 2.5}, "whole number"),
        ("gpu_bound", {"ranks": 1}, {"data": 4, "tensor": 2}, "only one of"),
        ("gpu_bound", {"ranks": 1}, {"n": 4, "gradients_mb": 0.0, "bandwidth_gb_s": 1}, "gradients_mb"),
        ("gpu_bound", {"ranks": 1}, {"tensor": 4, "bandwidth_gb_s": 1}, "activations_mb="),
        ("gpu_bound", {"ranks": 1}, {"pipeline": 4}, "microbatches="),
    ],
)
def test_what_is_not_shown_is_refused(kind: str, settings: dict[str, object], asked: dict[str, Any], why: str) -> None:
    with pytest.raises((SelectionError, ValueError), match=why):
        hg.what_if(graph_of(kind, **settings)).scale_ranks(**asked)
