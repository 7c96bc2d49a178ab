"""A what-if against the truth: the simulated job, run again with the parameter changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

import htagraph as hg
from htagraph.simulate import (
    REGIMES,
    Change,
    RemoveKernels,
    RemoveSync,
    ScaleHost,
    ScaleKernels,
    ScaleLaunches,
    ScaleLoader,
    ScaleNetwork,
    ScaleOptimizer,
    SetNetwork,
    SlowRank,
    simulate,
)
from htagraph.whatif.scenario import Scenario
from tests.whatif.changes.simulated import error, recorded, small

Case: TypeAlias = tuple[Callable[[Scenario], Scenario], Change]
WORK = ("computation", "memory")
CASES: dict[str, Case] = {
    "kernels_half": (lambda s: s.scale(factor=0.5, kind=WORK), ScaleKernels(factor=0.5)),
    "kernels_double": (lambda s: s.scale(factor=2, kind=WORK), ScaleKernels(factor=2.0)),
    "no_gemms": (lambda s: s.scale(factor=0, name="*gemm*", kind=WORK), RemoveKernels(name="*gemm*")),
    "one_step": (lambda s: s.scale(factor=3, kind=WORK, step=6), ScaleKernels(factor=3.0, steps=(1,))),
    "one_op": (lambda s: s.scale(factor=4, name="aten::mm", kind="op"), ScaleHost(op="aten::mm", factor=4.0)),
    "launches": (lambda s: s.no_launch_overhead(), ScaleLaunches(factor=0.0, latency_factor=0.0)),
    "transfers_half": (
        lambda s: s.scale(factor=0.5, kind="communication"),
        ScaleNetwork(factor=0.5, latency_factor=0.5),
    ),
    "transfers_treble": (
        lambda s: s.scale(factor=3, kind="communication"),
        ScaleNetwork(factor=3.0, latency_factor=3.0),
    ),
    "no_loader": (lambda s: s.free_dataloader(), ScaleLoader(factor=0.0)),
    "slow_loader": (lambda s: s.inject(rank=1, factor=9, kind="loader"), ScaleLoader(factor=9.0, ranks=(1,))),
    "optimizer": (lambda s: s.scale(factor=0.5, name="Optimizer.step*"), ScaleOptimizer(factor=0.5)),
    "no_sync": (lambda s: s.remove_sync(), RemoveSync()),
    "slow_rank": (lambda s: s.inject(rank=1, factor=1.5), SlowRank(rank=1, factor=1.5)),
    "slow_host": (lambda s: s.inject(rank=1, factor=1.5, kind="host"), SlowRank(rank=1, factor=1.5, what="host")),
}


@pytest.mark.slow
@pytest.mark.parametrize("regime", ["gpu_bound", "host_bound", "communication_bound", "tensor", "pipeline"])
@pytest.mark.parametrize("case", CASES)
def test_a_prediction_meets_the_truth(regime: str, case: str) -> None:
    assert error(small(regime), *CASES[case]) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
def test_the_mean_step_is_the_simulators(regime: str) -> None:
    graph, true = recorded(small(regime))
    outcome = hg.what_if(graph).run()
    assert outcome.mean_step_ns == outcome.baseline_mean_step_ns == pytest.approx(true, abs=2)


@pytest.mark.slow
@pytest.mark.parametrize(("latency", "bandwidth"), [(5.0, 40.0), (None, 40.0), (400.0, None)])
def test_another_network(latency: float | None, bandwidth: float | None) -> None:
    job = small("tensor").model_copy(update={"tp": 2, "ranks": 4, "network_gb_s": 12.0, "jitter": 0.0})
    truth = SetNetwork(latency_us=latency, gb_s=bandwidth)
    assert error(job, lambda s: s.network(latency_us=latency, bandwidth_gb_s=bandwidth), truth) <= 0.005


SIZES: dict[str, dict[str, float]] = {
    "buckets of two sizes": {"layers": 3, "buckets": 2},
    "tensor and data": {"tp": 2, "ranks": 4, "network_gb_s": 40.0},
}


FACTORS = (0.25, 0.5, 2.0, 8.0)


@pytest.mark.slow
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("latency", [0.0, 18.0, 90.0, 400.0])
def test_bytes_follow_the_bandwidth_and_latency_stays(sizes: str, factor: float, latency: float) -> None:
    job = small("balanced").model_copy(update={**SIZES[sizes], "network_latency_us": latency, "steps": 8})
    limit = 0.01 * max(1.0, factor / 4)  # what the rate that jittered transfers show is off by counts `factor` times
    assert error(job, lambda s: s.scale_network(factor=factor), ScaleNetwork(factor=factor)) <= limit


@pytest.mark.slow
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("latency", [0.0, 18.0, 70.0])  # as far as measured fixed parts of devices go (fixed_parts)
def test_where_one_size_shows_no_latency_the_interval_holds_it(latency: float, factor: float) -> None:
    job = small("tensor").model_copy(update={"network_latency_us": latency})
    graph, _ = recorded(job)
    outcome = hg.what_if(graph).scale_network(factor=factor).run()
    then = job.model_copy(update={"changes": (ScaleNetwork(factor=factor),)})
    speedup = outcome.baseline_mean_step_ns / simulate(then).mean_step_ns
    assert outcome.low <= speedup <= outcome.high


@pytest.mark.slow
def test_more_ranks_are_an_extrapolation_near_the_truth() -> None:
    job = small("communication_bound").model_copy(update={"ranks": 4, "jitter": 0.05})
    graph, before = recorded(job)
    true = simulate(job.model_copy(update={"ranks": 16})).mean_step_ns
    outcome = hg.what_if(graph).scale_ranks(16).run()
    assert abs(outcome.mean_step_ns - true) < abs(before - true)  # better than to say that nothing changes
    assert outcome.mean_step_ns == pytest.approx(true, rel=0.03)
    assert "extrapolation" in outcome.notes[0]
