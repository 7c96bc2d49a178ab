"""What a rank takes for a step by itself: jobs whose answer is obvious, and the simulator's."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.queries.own_steps import OwnSteps, own_steps
from htagraph.simulate import Job, SlowRank
from tests.analyses.test_stragglers import run
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, step

JOB = Job(ranks=4, steps=3, layers=2, jitter=0.01, seed=2)


def of(job: Job) -> OwnSteps:
    graph = run(job)
    return own_steps(graph)


def rank_that_computes(us: int, period: int) -> list[Json]:
    """Return two steps, launched ahead: a kernel, then a collective, which ends 5 µs after all ranks have come."""
    events = []
    for number in range(2):
        host, device = 10 + 10 * number, 30 + number * period
        events += [step(number, host, 9), launch(host, 1, 10 * number + 1), launch(host + 2, 1, 10 * number + 2)]
        events += [kernel(COMPUTE, device, us, 10 * number + 1)]
        events += [kernel(COMMUNICATE, device + us, period - us, 10 * number + 2)]
    return events


def test_waiting_is_no_own_time() -> None:
    """Both steps last 105 µs on both ranks; rank 0 computes for 20 µs, rank 1 for 100."""
    graph = load({0: rank_that_computes(20, 105), 1: rank_that_computes(100, 105)})
    found = own_steps(graph)
    assert found.steps.tolist() == [0, 1]
    assert found.lasted.tolist() == [[40_000, 105_000], [120_000, 105_000]]
    assert found.own.tolist() == [[40_000, 25_000], [120_000, 105_000]]
    assert found.work.tolist() == [[40_000, 20_000], [120_000, 100_000]]


def test_a_slow_rank_takes_longer_by_itself_and_the_others_do_not() -> None:
    plain, slowed = of(JOB).own, of(JOB.model_copy(update={"slow_ranks": (SlowRank(rank=2, factor=1.3),)})).own
    ratio = np.median(slowed / plain, axis=1)
    assert 1.1 < ratio[2] < 1.31
    assert np.delete(ratio, 2) == pytest.approx(np.ones(3), abs=0.01)


def test_clocks_change_nothing() -> None:
    skewed = JOB.model_copy(update={"clock_offsets_us": (0.0, 900.0, -400.0, 70.0)})
    assert of(skewed).own == pytest.approx(of(JOB).own, rel=1e-3)


def test_a_rank_without_collectives_has_no_steps() -> None:
    alone = load({0: rank_that_computes(20, 120)})
    assert np.isnan(own_steps(alone).own).all()


def test_a_job_without_steps_counts_as_one() -> None:
    graph = load({rank: [each for each in rank_that_computes(us, 120) if "Profiler" not in each["name"]]
                  for rank, us in ((0, 20), (1, 100))})  # fmt: skip
    found = own_steps(graph)
    assert found.steps.tolist() == [-1]
    assert found.own.shape == (2, 1)
    assert found.own[0, 0] < found.own[1, 0]


def test_a_rank_that_recorded_no_steps_has_those_of_its_collectives() -> None:
    """One rank's profiler had no schedule: what it does until the same collective is the same step."""
    slow = [each for each in rank_that_computes(100, 105) if "Profiler" not in each["name"]]
    graph = load({0: rank_that_computes(20, 105), 1: slow})
    found = own_steps(graph)
    assert found.steps.tolist() == [0, 1]
    assert found.own[:, 1].tolist() == [25_000, 105_000]
