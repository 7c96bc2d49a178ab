"""Which rank is slow in some steps: made delays, generated noise, and counting all cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

import htagraph.queries.slow_steps as module
from htagraph.queries.slow_steps import slow_steps

Times = npt.NDArray[np.float64]


def beyond(times: Times) -> Times:
    """Return the differences to the median of the other ranks, by definition."""
    return np.array([row - np.median(np.delete(times, at, 0), axis=0) for at, row in enumerate(times)])


def noisy(size: tuple[int, int], seed: int = 1) -> Times:
    return 100 + np.random.default_rng(seed).normal(size=size)


@pytest.mark.parametrize("late", [[1, 4, 7], [0, 4, 8], [0, 3, 5, 7, 9]])
def test_delays_that_recur_on_one_rank_are_its_own(late: list[int]) -> None:
    times = noisy((4, 10))
    times[2, late] += 30
    row, steps = slow_steps(beyond(times), 0.01)
    assert (row, np.flatnonzero(steps).tolist()) == (2, late)


@pytest.mark.parametrize(
    "late",
    [
        {2: [5]},  # once
        {2: [2, 3, 4, 5]},  # one delay that lasts
        {2: [2, 5, 6]},  # three at unequal distances
        {2: [1, 4]},  # at equal distances, but the recording ends before the second one would have been the third
        {0: [2, 7], 1: [3], 2: [5], 3: [8]},  # any rank is struck
        {1: [1, 4, 7], 2: [2, 5, 8]},  # two ranks alike
    ],
)
def test_delays_that_may_be_chance_are_nobodys(late: dict[int, list[int]]) -> None:
    times = noisy((4, 10))
    for rank, steps in late.items():
        times[rank, steps] += 30
    row, found = slow_steps(beyond(times), 0.01)
    assert row == -1
    assert not found.any()


def test_few_jobs_whose_ranks_are_all_struck_at_random_have_such_a_rank() -> None:
    rng = np.random.default_rng(5)
    named = []
    for size in [(2, 20), (4, 10), (4, 20), (8, 20)] * 100:
        struck = rng.random(size) < rng.choice([0.03, 0.1])
        named.append(slow_steps(beyond(noisy(size, int(rng.integers(2**31))) + 30 * struck), 0.01)[0] >= 0)
    assert np.mean(named) <= 0.01


@pytest.mark.parametrize(("count", "number"), [(10, 3), (12, 4), (7, 3), (9, 5)])
def test_the_chance_of_even_distances_is_their_share_of_all(count: int, number: int) -> None:
    def even(steps: tuple[int, ...]) -> bool:
        distance = steps[1] - steps[0]
        return distance > 1 and list(steps) == list(range(steps[0] % distance, count, distance))

    every = list(combinations(range(count), number))
    begins = np.array(next(steps for steps in every if even(steps)))
    share = sum(map(even, every)) / len(every)
    assert module._chance_of_distances(begins, count) == pytest.approx(min(1.0, 2 * share))


def test_the_chance_of_one_rank_is_a_binomial_tail() -> None:
    draws = np.random.default_rng(2).random((20_000, 5)) < 0.25
    assert module._at_least(3, 5, 0.25) == pytest.approx((draws.sum(axis=1) >= 3).mean(), abs=0.01)


@pytest.mark.parametrize("constant", ["_CHANCE_OF_LARGEST", "_CHANCE_OF_ONE_RANK"])
def test_a_clear_conclusion_does_not_depend_on_a_constant(constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, constant, 2 * getattr(module, constant))
    times = noisy((4, 10))
    assert slow_steps(beyond(times), 0.01)[0] == -1
    times[2, [1, 3, 5, 7, 9]] += 30
    assert slow_steps(beyond(times), 0.01)[0] == 2


def test_thousands_of_steps_are_judged() -> None:
    """Ways to choose a third of thousands of steps are no float: once they were divided and multiplied as such."""
    times = noisy((4, 3000))
    times[2, 1::3] += 30
    row, steps = slow_steps(beyond(times), 0.01)
    assert (row, int(steps.sum())) == (2, 1000)
    struck = np.random.default_rng(3).random(times.shape) < 0.2
    assert slow_steps(beyond(noisy((4, 3000)) + 30 * struck), 0.01)[0] == -1
