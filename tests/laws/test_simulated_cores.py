"""What-ifs of simulated jobs on hosts with few cores, against the simulator's own run with the change."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import cores_of
from htagraph.simulate import REGIMES, Change, Job, ScaleHost, SlowRank, simulate
from htagraph.whatif.scenario import Scenario
from tests.whatif.changes.simulated import recorded


class Case(NamedTuple):
    """A change, to the recording and to the job."""

    predict: Callable[[Scenario], Scenario]
    change: Change


class Miss(NamedTuple):
    """How far a prediction is from the truth."""

    error: float
    """|predicted - true| / true of the mean step time."""
    gain_error: float
    """The same difference, relative to the true change of the mean step time."""
    is_held: bool
    """Whether the interval of the speedup holds the truth."""


CASES = {
    "faster operator": Case(
        lambda s: s.scale(factor=0.25, name="aten::mm", kind="op"), ScaleHost(op="aten::mm", factor=0.25)
    ),
    "slower operator": Case(
        lambda s: s.scale(factor=4, name="aten::mm", kind="op"), ScaleHost(op="aten::mm", factor=4.0)
    ),
    "slow host": Case(lambda s: s.inject(rank=1, factor=1.5, kind="host"), SlowRank(rank=1, factor=1.5, what="host")),
    "slower host": Case(lambda s: s.inject(rank=0, factor=3, kind="host"), SlowRank(rank=0, factor=3.0, what="host")),
}
SHORT = [(3, 2), (4, 2), (4, 3)]
"""Ranks of a host, and fewer cores."""
SEEDS = range(4)
DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "ac2g"}


def job(ranks: int, cores: int | None, seed: int) -> Job:
    """Return a job of short kernels and busy hosts, of which each step ends with a wait for the device."""
    job = REGIMES["host_bound"]()
    return job.model_copy(
        update={"ranks": ranks, "steps": 4, "layers": 3, "synchronize": "step", "cores_per_host": cores, "seed": seed}
    )


def free_job(ranks: int, cores: int | None, seed: int) -> Job:
    """Return the same job without waits for devices: its ranks share nothing but the cores."""
    return job(ranks, cores, seed).model_copy(update={"synchronize": "never", "item": "none"})


@cache
def recorded_on_hosts(job: Job) -> DependencyGraph:
    """Return the graph of a job whose profiler recorded operators and calls, but no devices."""
    return read(job, {}, DEVICE_CATEGORIES)


@cache
def known_on_hosts(job: Job) -> DependencyGraph:
    """Return the same graph, whose files say which cores their ranks may use."""
    assert job.cores_per_host is not None
    return read(job, {"cores": list(range(job.cores_per_host))}, DEVICE_CATEGORIES)


@cache
def known_job(job: Job) -> DependencyGraph:
    """Return the graph of a job whose profiler recorded everything, and which cores ranks may use."""
    assert job.cores_per_host is not None
    return read(job, {"cores": list(range(job.cores_per_host))}, set())


def read(job: Job, settings: dict[str, list[int]], left_out: set[str]) -> DependencyGraph:
    """Return the graph of a job, with settings of the recorder in its files, and without some categories of events."""
    done = simulate(job)
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(job.ranks):
            trace = json.loads(done.text(rank))
            trace["htagraph_profile"] = settings
            trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("cat") not in left_out]
            Path(folder, f"rank-{rank}.json").write_text(json.dumps(trace))
        return hg.load(folder)


def recorded_job(job: Job) -> DependencyGraph:
    """Return the graph of a job whose profiler recorded everything."""
    return recorded(job)[0]


def miss(graph: DependencyGraph, job: Job, case: Case) -> Miss:
    """Return how far the prediction of a change is from the truth."""
    true = simulate(job.model_copy(update={"changes": (case.change,)})).mean_step_ns
    outcome = case.predict(hg.what_if(graph)).run()
    before = outcome.baseline_mean_step_ns
    difference = abs(outcome.mean_step_ns - true)
    return Miss(
        difference / true, difference / max(1, abs(true - before)), outcome.low <= before / true <= outcome.high
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_with_a_core_for_each_rank_predictions_are_those_of_hosts_without_limits(ranks: int, name: str) -> None:
    for seed in SEEDS[:2]:  # the answers are equal, not near: other seeds draw other lengths of the same work
        limited, unlimited = (job(ranks, cores, seed) for cores in (ranks, None))
        found = miss(recorded_job(limited), limited, CASES[name])
        assert found == miss(recorded_job(unlimited), unlimited, CASES[name])
        assert found.error <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("name", ["faster operator", "slower operator"])
def test_two_ranks_for_each_core_are_predicted_with_their_waits_for_cores(name: str) -> None:
    for seed in SEEDS:
        shared = free_job(4, 2, seed)
        graph = recorded_on_hosts(shared)
        cores = cores_of(graph)
        assert cores is not None
        assert cores.threads.cores.tolist() == [2]
        found = miss(graph, shared, CASES[name])
        assert found.error <= 0.01
        assert found.is_held


@pytest.mark.slow
@pytest.mark.parametrize("name", ["faster operator", "slower operator"])
@pytest.mark.parametrize(("ranks", "cores"), SHORT)
def test_the_interval_of_an_operator_holds_the_truth_where_cores_are_short(ranks: int, cores: int, name: str) -> None:
    for seed in SEEDS:
        shared = free_job(ranks, cores, seed)
        assert miss(recorded_on_hosts(shared), shared, CASES[name]).is_held


@pytest.mark.parametrize("record", [known_on_hosts, known_job])
def test_two_ranks_that_share_one_core_are_predicted(record: Callable[[Job], DependencyGraph]) -> None:
    shared = free_job(2, 1, 0)
    assert miss(record(shared), shared, CASES["slower operator"]).error <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize(("record", "make"), [(known_on_hosts, free_job), (known_job, free_job), (known_job, job)])
def test_a_known_number_of_cores_predicts_jobs_that_are_short_of_them(
    record: Callable[[Job], DependencyGraph], make: Callable[[int, int, int], Job]
) -> None:
    misses = []
    for ranks, cores in [(2, 1), *SHORT]:
        shared = make(ranks, cores, 0)
        misses += [miss(record(shared), shared, case) for case in CASES.values()]
    error = np.array([found.error for found in misses])
    assert np.median(error) <= 0.02
    assert np.quantile(error, 0.95) <= 0.15
    assert np.mean([found.is_held for found in misses]) >= 0.9


@pytest.mark.parametrize("record", [known_on_hosts, known_job])
@pytest.mark.parametrize("make", [job, free_job])
@pytest.mark.parametrize(("ranks", "cores"), [(2, 1), *SHORT])
def test_a_job_that_is_short_of_cores_comes_back_to_the_ns(
    record: Callable[[Job], DependencyGraph], make: Callable[[int, int, int], Job], ranks: int, cores: int
) -> None:
    graph = record(make(ranks, cores, 0))
    same = hg.what_if(graph).scale(factor=1.0, name="aten::mm").run()
    np.testing.assert_array_equal(same.time, graph.time)


@pytest.mark.parametrize(("ranks", "cores"), [(2, 1), *SHORT])
def test_a_core_that_a_rank_leaves_to_another_one_is_no_hand_over(ranks: int, cores: int) -> None:
    for seed in range(2):
        graph = known_on_hosts(free_job(ranks, cores, seed))
        rank = graph.activities.rank
        between = rank[graph.edges.source >> 1] != rank[graph.edges.target >> 1]
        assert not (between & (graph.edges.kind == EdgeKind.THREAD)).any()
