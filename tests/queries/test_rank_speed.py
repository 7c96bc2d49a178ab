"""The speed of ranks at work of the same names, where they have different amounts of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.rank_speed import OwnSteps, own_steps, slow_stage, speed_of, work_of
from htagraph.simulate import Job, SlowRank
from tests.analyses.test_stragglers import run
from tests.host_jobs import host_job, transfer
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, op, step


def speed_at_like_work(graph: DependencyGraph, *, device: bool = False) -> npt.NDArray[np.float64]:
    """Return how long all ranks take for the same work in step 0, ns."""
    ranks = np.arange(len(graph.ranks))
    return speed_of(work_of(graph, ranks, device), len(ranks), np.zeros(1, np.int64))


def stage(first: float, others: float, count: int) -> list[Json]:
    """Return a step of `count` operators of each of three names; those of the first one take another time."""
    events, at = [step(0, 0, 10_000)], 10.0
    for _ in range(count):
        for name, us in (("a", first), ("b", others), ("c", others)):
            events.append(op(name, at, us))
            at += us + 1
    return events


def test_a_rank_slow_in_all_names_is_slow_however_much_it_does() -> None:
    graph = load({0: stage(10, 10, 5), 1: stage(12, 12, 15), 2: stage(10, 10, 5)})
    speed = speed_at_like_work(graph)
    assert speed[:, 0] == pytest.approx(speed[0, 0] * np.array([1, 1.2, 1]))


def test_a_rank_slow_in_one_name_has_more_to_do_by_design() -> None:
    speed = speed_at_like_work(load({0: stage(10, 10, 5), 1: stage(30, 10, 5), 2: stage(10, 10, 5)}))
    assert speed[:, 0] == pytest.approx(speed[0, 0] * np.ones(3))


def test_without_common_names_nothing_compares() -> None:
    graph = load({0: stage(10, 10, 5), 1: [step(0, 0, 100), op("x", 5, 50)]})
    assert np.isnan(speed_at_like_work(graph)).all()
    assert np.isnan(speed_at_like_work(graph, device=True)).all()


BATCHES = 4


def pipeline(*takes: float, steps: int = 3, pipelines: int = 1) -> DependencyGraph:
    """Return a job whose stages take these times, µs, for each of four batches; the last one answers the first.

    Args:
        takes: by stage.
        steps: how many.
        pipelines: how many there are beside each other, of consecutive ranks.
    """
    count = len(takes)
    job: dict[int, list[Json]] = {rank: [] for rank in range(count * pipelines)}
    period = sum(takes) + (BATCHES - 1) * max(takes) + 10
    for rank, events in job.items():
        stage, free = rank % count, 1.0
        for number in range(steps):
            begin, since = 10 + number * period, free
            for batch in range(BATCHES):
                ready = begin + sum(takes[:stage]) + batch * max(takes[: stage + 1])
                if stage:
                    events += transfer("recv", stage - 1, free + 1, ready, tag=batch)
                events.append(op("work", ready + 0.5, takes[stage] - 4))
                free = ready + takes[stage] - 3
                if stage + 1 < count:
                    events += transfer("send", stage + 1, free, free + 0.5, tag=batch)
            if stage == count - 1:
                events += transfer("send", 0, free + 1, free + 1.5, tag=9)
            if not stage:
                events += transfer("recv", count - 1, free + 2, begin + period - 10, tag=9)
                free = begin + period - 10
            free += 3
            events.append(step(number, since, free - since - 0.5))
    groups = [[rank + count * each for rank in range(count)] for each in range(pipelines)]
    return host_job(job, groups=groups)


def test_the_stage_that_takes_longest_is_found_and_what_equal_stages_take() -> None:
    graph = pipeline(100, 300, 100)
    found = slow_stage(graph)
    assert found is not None
    assert (found.ranks, found.others, found.steps) == ((1,), (0, 2), 3)
    assert found.own_ns / 1000 == pytest.approx(BATCHES * 300, rel=0.05)
    assert found.least_ns / 1000 == pytest.approx(BATCHES * 100, rel=0.1)
    assert found.most_ns / 1000 == pytest.approx(BATCHES * 100, rel=0.1)
    assert found.even[1] == pytest.approx(500 / 3 / 300, rel=0.05)


def test_the_same_stage_of_several_pipelines_is_one() -> None:
    graph = pipeline(100, 300, 100, pipelines=2)
    found = slow_stage(graph)
    assert found is not None
    assert (found.ranks, found.others) == ((1, 4), (0, 2, 3, 5))


def test_of_equal_stages_and_in_jobs_without_stages_none_is_slow() -> None:
    found = slow_stage(pipeline(100, 100, 100))
    assert found is None or found.own_ns < 1.1 * found.least_ns
    replicas = host_job({rank: [step(1, 0, 100), op("work", 1, 50)] for rank in range(2)})
    assert slow_stage(replicas) is None


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
