"""The speed of ranks at work of the same names, where they have different amounts of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import htagraph.queries.rank_speed as module
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.compare import compare
from htagraph.queries.peers import peers
from htagraph.queries.rank_speed import rank_pace, slow_stage, speed_of, work_of
from tests.host_jobs import host_job, transfer
from tests.strategies import Json, load, op, step


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


def steps(factors: list[float], *, count: int = 40, noise: float = 0.0, seed: int = 0) -> list[Json]:
    """Return a step per factor, of `count` operators that take 10 to 20 µs times the factor."""
    rng = np.random.default_rng(seed)
    events: list[Json] = []
    for number, factor in enumerate(factors):
        at = begin = 10_000.0 * number
        for i in range(count):
            us = factor * (10 + i % 11) * (1 + noise * rng.normal())
            events.append(op("aten::mm", at + 1, us))
            at += us + 2
        events.append(step(number, begin, at + 1 - begin))
    return events


def test_a_pace_is_a_ratio_by_batch() -> None:
    graph = load({0: steps([1.0, 1.0]), 1: steps([1.1, 1.2])})
    pace = rank_pace(graph, np.arange(2), peers(graph), device=False)
    ratio = pace[1] - pace[0]  # logarithms, of times with `_FLOOR_NS` added
    assert pace.mean(axis=0) == pytest.approx(np.ones(pace.shape[1]))
    assert ratio == pytest.approx(np.repeat(np.log([1.1, 1.2]), pace.shape[1] // 2), rel=0.02)


def test_steps_have_as_many_batches_as_make_enough() -> None:
    graph = load({rank: steps([1.0] * 5) for rank in range(3)})
    assert rank_pace(graph, np.arange(3), peers(graph), device=False).shape == (3, 5 * min(20 // 5, 40 // 10))
    few = load({rank: steps([1.0] * 5, count=4) for rank in range(3)})
    assert rank_pace(few, np.arange(3), peers(few), device=False).shape == (3, 5)


def test_without_common_work_there_is_no_batch() -> None:
    graph = load({0: steps([1.0]), 1: [step(0, 0, 100), op("x", 5, 50)]})
    assert rank_pace(graph, np.arange(2), peers(graph), device=False).shape == (2, 0)
    assert rank_pace(graph, np.arange(2), peers(graph), device=True).shape == (2, 0)


@pytest.mark.parametrize("count", [1, 3])
def test_few_steps_tell_a_rank_that_is_slower_throughout_and_none_that_is_not(count: int) -> None:
    for seed in range(6):
        job = [steps([1.0] * count, count=220, noise=0.1, seed=9 * seed + rank) for rank in range(2)]
        job.append(steps([1.15] * count, count=220, noise=0.1, seed=9 * seed + 2))
        graph = load(dict(enumerate(job)))
        slow = [
            compare(rank_pace(graph, ranks, peers(graph), device=False)).slow.tolist()
            for ranks in (np.arange(2), np.arange(1, 3))
        ]
        assert slow == [[False, False], [False, True]]


def test_work_of_a_step_that_is_delayed_together_is_no_evidence() -> None:
    """Operators of one step share a factor: as independent draws they would show some rank to be slow in each job."""
    rng = np.random.default_rng(4)
    named: list[bool] = []
    for _ in range(12):
        factors = np.exp(0.03 * rng.normal(size=(2, 5))).tolist()
        graph = load({rank: steps(factors[rank], count=60) for rank in range(2)})
        named.append(bool(compare(rank_pace(graph, np.arange(2), peers(graph), device=False)).slow.any()))
    assert not any(named)


@pytest.mark.parametrize("constant", ["_BATCHES", "_MIN_IN_BATCH", "_MAX_DEVIATIONS", "_FLOOR_NS"])
def test_a_clear_conclusion_does_not_depend_on_a_constant(constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {rank: steps([1.0 + 0.2 * (rank == 1)] * 4, count=60, noise=0.05, seed=rank) for rank in range(3)}
    graph = load(job)
    monkeypatch.setattr(module, constant, type(getattr(module, constant))(2 * getattr(module, constant)))
    slow = compare(rank_pace(graph, np.arange(3), peers(graph), device=False)).slow
    assert slow.tolist() == [False, True, False]


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
