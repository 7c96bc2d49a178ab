from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.simulate import simulate
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.links import transfers
from htagraph.whatif.options import CHANGES
from tests.reach import DATA
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
    assert not any("data parallel are taken" in each for each in outcome.notes)
    assert "between hosts" in outcome.notes[1]
    alone = hg.what_if(graph).scale_ranks(64).run()  # labels say which groups are data parallel
    assert np.array_equal(alone.state.lag, lag)
    assert "dp [0, 2]; those such as 3 tp [0, 1] stay; groups= says others, such as groups=*dp*" in alone.notes[1]


@pytest.mark.slow
def test_late_ranks_are_drawn_from_the_spread_of_arrivals() -> None:
    calm, _ = recorded(small("gpu_bound").model_copy(update={"ranks": 4, "jitter": 0.0}))
    noisy, _ = recorded(small("gpu_bound").model_copy(update={"ranks": 4, "jitter": 0.1}))
    grown = [hg.what_if(graph).scale_ranks(64) for graph in (calm, noisy)]
    extra = [int((scenario.state.gap - scenario.graph.gap).sum()) for scenario in grown]
    assert extra[1] > 10 * max(extra[0], 0)


STAGED = {"pp": 2, "ranks": 2, "layers": 8, "microbatches": 8}
TENSOR = {"tp": 2, "ranks": 4}
ONLY_TENSOR = {"tp": 2, "ranks": 2, "with_stack": True}


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
        ("gpu_bound", {"ranks": 1}, {"n": 4, "gradients_mb": -1.0, "bandwidth_gb_s": 1}, "gradients_mb"),
        ("gpu_bound", {"ranks": 1}, {"n": 4, "microbatches": 4}, "microbatches= changes nothing here"),
        ("gpu_bound", {}, {"n": 4, "activations_mb": 4}, "activations_mb= changes nothing here"),
        ("gpu_bound", STAGED, {"pipeline": 4, "bandwidth_gb_s": 4}, "bandwidth_gb_s= changes nothing here"),
        ("tensor", ONLY_TENSOR, {"n": 3}, "give a multiple of 2"),
        ("gpu_bound", {"ranks": 1}, {"tensor": 4, "bandwidth_gb_s": 1}, "activations_mb="),
        ("gpu_bound", {"ranks": 1}, {"pipeline": 4}, "microbatches="),
    ],
)
def test_what_is_not_shown_is_refused(kind: str, settings: dict[str, object], asked: dict[str, Any], why: str) -> None:
    with pytest.raises((SelectionError, ValueError), match=why):
        hg.what_if(graph_of(kind, **settings)).scale_ranks(**asked)


def test_what_a_refusal_proposes_works() -> None:
    job = hg.what_if(hg.load(DATA / "demo"))
    with pytest.raises(SelectionError, match=r"such as groups=\*default_pg\*;"):
        job.scale_ranks(data=8)
    times = [job.scale_ranks(8).run().makespan_ns]
    for groups in ("*default_pg*", "*", "0 default_pg [0, 1, 2, 3]"):
        change = CHANGES["scale-ranks"].read(f"data=8,groups={groups}")
        assert change.options["groups"] == groups
        times.append(change.apply(job).run().makespan_ns)
    assert len(set(times)) == 1


def test_strong_scaling_shares_the_loader() -> None:
    job = hg.what_if(hg.load(DATA / "gpu_demo" / "before"))  # the loader takes two thirds of a step
    shared, smaller = job.scale_ranks(4, strong=True).run(), job.batch(new=4).run()
    assert shared.speedup == pytest.approx(smaller.speedup, rel=0.02)
    assert shared.low < smaller.speedup < shared.high
    assert job.scale_ranks(tensor=4, strong=True, activations_mb=1).run().speedup < 1.1  # each loads the whole batch


def test_a_bandwidth_is_that_of_groups_that_grow() -> None:
    graph, _ = recorded(small("communication_bound"))
    job = hg.what_if(graph)
    fast, slow = (job.scale_ranks(8, bandwidth_gb_s=rate).run() for rate in (100.0, 10.0))
    found = transfers(job.state)
    rows = found.edges[(found.moved > 0) & (graph.edges.lag[found.edges] > 0)]
    moved = found.moved[(found.moved > 0) & (graph.edges.lag[found.edges] > 0)] * (2 * 7 / 8) / (2 * 1 / 2)
    assert slow.state.lag[rows] - fast.state.lag[rows] == pytest.approx(moved / 10 - moved / 100, rel=1e-3, abs=2)
    assert slow.makespan_ns > fast.makespan_ns


def test_links_between_hosts_are_not_known() -> None:
    job = hg.what_if(recorded(small("communication_bound"))[0])  # hosts of eight devices
    few, many, told = job.scale_ranks(8).run(), job.scale_ranks(16).run(), job.scale_ranks(16, bandwidth_gb_s=99).run()
    assert "between hosts of 8 devices" in " ".join(many.notes)
    assert "between hosts" not in " ".join((*few.notes, *told.notes))
    assert many.low < 0.1 * many.speedup < 0.5 * few.low


@pytest.mark.parametrize("asked", [{"n": 4}, {"data": 2}])
def test_tensor_parallel_ranks_become_replicas_that_reduce_gradients(tmp_path: Path, asked: dict[str, Any]) -> None:
    simulate(small("tensor").model_copy(update=ONLY_TENSOR)).write(tmp_path)
    job = hg.what_if(hg.load(tmp_path))
    with pytest.raises(SelectionError, match=r"2 replicas of the 2 recorded ranks.*gradients_mb="):
        job.scale_ranks(**asked)
    truth = simulate(small("tensor").model_copy(update=TENSOR)).mean_step_ns
    outcome = job.scale_ranks(**asked, gradients_mb=50, bandwidth_gb_s=200).run()
    assert outcome.state.scaled == (2, 2, 2)
    assert outcome.mean_step_ns == pytest.approx(truth, rel=0.03)
    assert job.scale_ranks(**asked, gradients_mb=0).run().makespan_ns <= outcome.makespan_ns


def without_labels(graph: DependencyGraph) -> DependencyGraph:
    """Return a job whose process groups have numbers for labels."""
    assert graph.matches is not None
    names = {label: str(place) for place, label in enumerate(sorted({*graph.matches.group}))}
    return replace(graph, matches=replace(graph.matches, group=tuple(names[each] for each in graph.matches.group)))


@pytest.mark.parametrize("ranks", [2, 4])
def test_where_no_pass_is_shown_the_interval_holds_either_layout(ranks: int) -> None:
    job = small("tensor").model_copy(update={"tp": 2, "ranks": ranks})
    graph = without_labels(recorded(job)[0])
    graph = graph.replace(edges=graph.edges.take(np.flatnonzero(graph.edges.kind != EdgeKind.AUTOGRAD)))
    outcome = hg.what_if(graph).scale_ranks(2 * ranks).run()
    assert outcome.interval_cause == IntervalCause.GROUPS_MAY_STAY
    least, most = (outcome.mean_step_ns * outcome.speedup / each for each in (outcome.high, outcome.low))
    for tensor in (2, 4):
        truth = simulate(job.model_copy(update={"ranks": 2 * ranks, "tp": tensor})).mean_step_ns
        assert least <= truth <= most
    said = hg.what_if(graph).scale_ranks(2 * ranks, groups="*").run()
    assert said.interval_cause != IntervalCause.GROUPS_MAY_STAY


def test_groups_without_labels_are_told_by_their_forward_pass() -> None:
    job = small("tensor").model_copy(update=TENSOR)
    truth = simulate(job.model_copy(update={"ranks": 8})).mean_step_ns
    outcome = hg.what_if(without_labels(recorded(job)[0])).scale_ranks(8).run()
    assert outcome.mean_step_ns == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize(
    ("asked", "scaled"),
    [({"n": 8}, (4, 4, 4)), ({"n": 8, "strong": True}, (4, 1, 1)), ({"data": 4, "tensor": 4}, (4, 2, 4))],
)
def test_how_much_more_is_done(asked: dict[str, Any], scaled: tuple[float, ...]) -> None:
    graph = graph_of("tensor", **TENSOR) if "tensor" in asked else graph_of("gpu_bound")
    assert hg.what_if(graph).scale_ranks(**asked).state.scaled == scaled
