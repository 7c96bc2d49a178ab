"""Law: a gather that was over in time is still waited for, so that slower gathers or faster work are predicted right.

Sharded jobs gather parameters a layer ahead, and wait for no computation to do so. In the recording no such wait lasts;
ids name it only where they were recorded. The simulator, run with the change, is the truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.simulate import Job, ScaleHost, ScaleKernels, ScaleNetwork, simulate
from htagraph.whatif.scenario import Scenario

SHARDED = Job(ranks=4, steps=3, seed=5, data_strategy="fsdp", network_gb_s=80.0, free_gathers=True)
HOST_BOUND = SHARDED.model_copy(update={"network_gb_s": 300.0, "kernel_us": 20.0, "host_us_per_op": 15.0})
RECORDED: dict[str, dict[str, Any]] = {
    "with ids": {},
    "without ids": {"cuda_sync": False, "group_args": False},
    "rocm": {"device": "rocm", "cuda_sync": False, "group_args": False},
}
ON_HOST = ("op", "annotation", "step", "python")


def error_percent(scenario: Scenario, truth: Job) -> float:
    true_ns = simulate(truth).mean_step_ns
    return 100 * abs(scenario.run().mean_step_ns - true_ns) / true_ns


def recorded(job: Job, how: str, folder: Path) -> Scenario:
    simulate(job.model_copy(update=RECORDED[how])).write(folder, suffix=".json", truth=False)
    return hg.what_if(hg.load(folder))


@pytest.mark.parametrize("how", RECORDED)
def test_slower_gathers_and_faster_kernels_bind(how: str, tmp_path: Path) -> None:
    as_recorded = recorded(SHARDED, how, tmp_path)
    slower = SHARDED.model_copy(update={"changes": (ScaleNetwork(factor=3, latency_factor=3),)})
    faster = SHARDED.model_copy(update={"changes": (ScaleKernels(what="compute", factor=0.3),)})
    assert error_percent(as_recorded.scale(kind="communication", factor=3), slower) < 1
    assert error_percent(as_recorded.scale(kind="computation", factor=0.3), faster) < 1


@pytest.mark.parametrize("how", RECORDED)
def test_kernels_that_were_never_queued_pause_as_kernels_do(how: str, tmp_path: Path) -> None:
    faster = HOST_BOUND.model_copy(update={"changes": (ScaleHost(factor=0.1),)})
    as_recorded = recorded(HOST_BOUND, how, tmp_path)
    assert error_percent(as_recorded.scale(kind=ON_HOST, factor=0.1), faster) < 1.5
