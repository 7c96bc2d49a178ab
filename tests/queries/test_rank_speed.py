"""The speed of ranks at work of the same names, where they have different amounts of it."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph.queries.rank_speed as module
from htagraph.queries.compare import excess_of
from htagraph.queries.peers import peers
from htagraph.queries.rank_speed import rank_pace, rank_speed
from tests.strategies import Json, load, op, step

STEPS = np.zeros(1, np.int64)


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
    speed = rank_speed(graph, np.arange(3), STEPS, device=False)
    assert speed[:, 0] == pytest.approx(speed[0, 0] * np.array([1, 1.2, 1]))


def test_a_rank_slow_in_one_name_has_more_to_do_by_design() -> None:
    speed = rank_speed(
        load({0: stage(10, 10, 5), 1: stage(30, 10, 5), 2: stage(10, 10, 5)}), np.arange(3), STEPS, device=False
    )
    assert speed[:, 0] == pytest.approx(speed[0, 0] * np.ones(3))


def test_without_common_names_nothing_compares() -> None:
    graph = load({0: stage(10, 10, 5), 1: [step(0, 0, 100), op("x", 5, 50)]})
    assert np.isnan(rank_speed(graph, np.arange(2), STEPS, device=False)).all()
    assert np.isnan(rank_speed(graph, np.arange(2), STEPS, device=True)).all()


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
            excess_of(rank_pace(graph, ranks, peers(graph), device=False)).slow.tolist()
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
        named.append(bool(excess_of(rank_pace(graph, np.arange(2), peers(graph), device=False)).slow.any()))
    assert not any(named)


@pytest.mark.parametrize("constant", ["_BATCHES", "_MIN_IN_BATCH", "_MAX_DEVIATIONS", "_FLOOR_NS"])
def test_a_clear_conclusion_does_not_depend_on_a_constant(constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {rank: steps([1.0 + 0.2 * (rank == 1)] * 4, count=60, noise=0.05, seed=rank) for rank in range(3)}
    graph = load(job)
    monkeypatch.setattr(module, constant, type(getattr(module, constant))(2 * getattr(module, constant)))
    slow = excess_of(rank_pace(graph, np.arange(3), peers(graph), device=False)).slow
    assert slow.tolist() == [False, True, False]
