"""What-ifs of simulated jobs whose hosts share their cores fairly, against the simulator's own run with the change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.turns import turns_of_cores
from htagraph.graph.measures.steps import mean_step_ns
from htagraph.simulate import Job, simulate
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.turns import moments_in_turns
from tests.laws.test_simulated_cores import CASES, Case, free_job, job, known_job, known_on_hosts

NEAR = 0.02
"""How far a prediction in turns may be from the truth, relative."""
FAR = 0.08
"""By how much a prediction misses the truth at least that knows no turns, where one rank becomes slower."""


def fair(ranks: int, cores: int) -> Job:
    """Return a job whose ranks share nothing but the cores, by short turns."""
    return free_job(ranks, cores, 0).model_copy(update={"fair_cores": True})


def true_step_ns(shared: Job, case: Case) -> float:
    """Return the mean step time of a job with a change."""
    return simulate(shared.model_copy(update={"changes": (case.change,)})).mean_step_ns


@pytest.mark.parametrize("name", ["faster operator", "slow host"])
def test_a_prediction_in_turns_is_the_truth_where_two_ranks_share_a_core(name: str) -> None:
    shared = fair(2, 1)
    graph = known_on_hosts(shared)
    scenario = CASES[name].predict(hg.what_if(graph))
    time = moments_in_turns(scenario.state)[IntervalCause.SHARED_CORES]
    true = true_step_ns(shared, CASES[name])
    assert mean_step_ns(scenario.state.graph, time) == pytest.approx(true, rel=NEAR)
    outcome = scenario.run()
    assert outcome.low <= outcome.baseline_mean_step_ns / true <= outcome.high


def test_a_prediction_without_turns_misses_a_slow_rank() -> None:
    shared = fair(2, 1)
    case = CASES["slow host"]
    outcome = case.predict(hg.what_if(known_on_hosts(shared))).run()
    assert outcome.mean_step_ns > (1 + FAR) * true_step_ns(shared, case)


def test_the_unchanged_job_comes_back_to_the_ns() -> None:
    graph = known_on_hosts(fair(2, 1))
    np.testing.assert_array_equal(moments_in_turns(hg.what_if(graph).state)[IntervalCause.SHARED_CORES], graph.time)


@pytest.mark.slow
@pytest.mark.parametrize("make", [free_job, job])
@pytest.mark.parametrize("record", [known_on_hosts, known_job])
@pytest.mark.parametrize(("ranks", "cores"), [(2, 1), (3, 2)])
def test_predictions_in_turns_are_the_truth(
    make: Callable[[int, int, int], Job], record: Callable[[Job], DependencyGraph], ranks: int, cores: int
) -> None:
    shared = make(ranks, cores, 0).model_copy(update={"fair_cores": True})
    graph = record(shared)
    for case in CASES.values():
        scenario = case.predict(hg.what_if(graph))
        time = moments_in_turns(scenario.state)[IntervalCause.SHARED_CORES]
        assert mean_step_ns(scenario.state.graph, time) == pytest.approx(true_step_ns(shared, case), rel=NEAR)


def test_ranks_with_a_core_each_take_no_turns() -> None:
    assert turns_of_cores(known_on_hosts(fair(2, 2))) is None
