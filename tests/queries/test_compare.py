"""Whether the steps of a rank are slower by more than chance: generated own times of which the truth is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

import htagraph.queries.compare as module
from htagraph.queries.compare import Parts, compare, slow_steps
from htagraph.queries.rank_speed import slow_ranks
from htagraph.simulate import Job, SlowRank
from tests.analyses.test_stragglers import run

Times = npt.NDArray[np.float64]
STEP_NS = 1e8


def noise(kind: str, size: tuple[int, int], rng: np.random.Generator) -> Times:
    """Return noise of deviation 1 by rank and step."""
    ranks, steps = size
    if kind == "heavy tails":
        return rng.standard_t(3, size) / np.sqrt(3)
    if kind == "stalls":
        return 0.3 * rng.normal(size=size) + (rng.random(size) < 0.08) * rng.exponential(5, size)
    if kind == "uneven ranks":
        return rng.normal(size=size) * np.exp(0.8 * rng.normal(size=(ranks, 1)))
    if kind == "lasting":
        out = np.zeros((ranks, steps + 20))
        for step in range(1, steps + 20):
            out[:, step] = 0.6 * out[:, step - 1] + 0.8 * rng.normal(size=ranks)
        return out[:, 20:]
    return rng.normal(size=size)


def jobs(kind: str, size: tuple[int, int], count: int) -> list[Times]:
    rng = np.random.default_rng(7)
    return [STEP_NS * (1 + 0.01 * noise(kind, size, rng)) for _ in range(count)]


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "stalls", "uneven ranks", "lasting"])
def test_few_jobs_without_a_slow_rank_have_one(kind: str) -> None:
    """At most 1 % over sizes; one rank of two is hardest, as nobody shows how much ranks differ."""
    sizes = [(2, 5), (2, 20), (3, 5), (4, 3), (4, 5), (4, 20), (8, 2), (8, 5), (8, 20)]
    slow = [compare(times).slow.any() for size in sizes for times in jobs(kind, size, 60)]
    assert np.mean(slow) <= 0.01


@pytest.mark.parametrize(("size", "errors"), [((4, 5), 12), ((8, 5), 6), ((4, 20), 8), ((8, 20), 3), ((2, 20), 5)])
def test_a_slow_rank_is_found_and_never_another(size: tuple[int, int], errors: float) -> None:
    """`errors`: how many times the deviation of its steps it is slower."""
    slower = np.zeros(size[0])
    slower[1] = errors * 0.01
    named = [compare(times + STEP_NS * slower[:, None]).slow for times in jobs("normal", size, 100)]
    assert np.mean([slow[1] for slow in named]) >= 0.95
    assert not any(slow[others].any() for slow in named for others in [np.arange(size[0]) != 1])


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_few_steps_suffice_for_an_overwhelming_difference(steps: int) -> None:
    times = np.random.default_rng(1).uniform(25e6, 58e6, (8, steps))
    times[5] = 1_010e6
    assert np.flatnonzero(compare(times).slow).tolist() == [5]


def test_a_single_step_of_few_ranks_is_no_evidence() -> None:
    assert not compare(np.array([[1.0], [1.01], [5.0]])).slow.any()


def test_short_steps_are_compared_in_proportion() -> None:
    """The first step of a recording may be half as long; a rank that is 10 % slower is 10 % slower there, too."""
    times = np.array([[50.0, 100.0, 100.0], [55.0, 110.0, 110.1], [50.0, 100.1, 100.0], [50.1, 100.0, 99.9]]) * 1e6
    assert compare(times).slow.tolist() == [False, True, False, False]


def test_of_two_equally_slow_ranks_neither_is_the_one() -> None:
    slower = np.array([0.0, 0.2, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])[:, None]
    named = [compare(times + STEP_NS * slower).slow.any() for times in jobs("normal", (8, 5), 100)]
    assert np.mean(named) <= 0.05


@pytest.mark.parametrize(("late", "held_up"), [([1, 4, 7], 1), ([0, 3, 5, 7, 9], 1), ([2, 5, 6], 0), ([4], 0)])
def test_a_rank_that_is_slow_in_some_steps_is_so_in_those_if_they_recur(late: list[int], held_up: int) -> None:
    """At equal distances, or often; three of ten steps at unequal distances may be chance, and a single one is."""
    (times,) = jobs("normal", (4, 10), 1)
    times[3, late] += 0.5 * STEP_NS
    found = compare(times)
    assert found.slow.tolist() == [False, False, False, bool(held_up)]
    assert np.flatnonzero(found.when[3]).tolist() == (late if held_up else [])
    assert not held_up or found.in_slow[3] == pytest.approx(0.5 * STEP_NS, rel=0.05)


def test_a_rank_whose_transfers_take_longer_is_not_slow() -> None:
    (work,) = jobs("normal", (4, 10), 1)
    own = 2 * work
    own[2] += 0.3 * STEP_NS
    assert compare(own).slow.tolist() == [False, False, True, False]
    assert not compare(own, work=work).slow.any()


def test_ranks_without_steps_are_left_out() -> None:
    times = np.array([[np.nan] * 4, [100.0, 101, 100, 101], [100.1, 100, 101, 100], [150.0, 151, 150, 152]]) * 1e6
    found = compare(times)
    assert found.slow.tolist() == [False, False, False, True]
    assert np.isnan(found.excess[0])
    assert np.isnan(compare(times[:1]).excess).all()
    assert np.isnan(compare(np.zeros((3, 0))).excess).all()


@pytest.mark.parametrize(
    ("constant", "factor", "slower_by"),
    [("CHANCE", 2.0, 0.0), ("_CHANCE_BETWEEN", 2.0, 0.0), ("MEDIAN_VARIANCE", 2.0, 0.0), ("CHANCE", 2.0, 0.3),
     ("_CHANCE_BETWEEN", 2.0, 0.3), ("MEDIAN_VARIANCE", 2.0, 0.3), ("SURE_ERRORS", 2.0, 0.3)],
)  # fmt: skip
def test_a_clear_conclusion_does_not_depend_on_a_constant(
    constant: str, factor: float, slower_by: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, constant, factor * getattr(module, constant))
    for times in jobs("normal", (4, 5), 10):
        times[2] *= 1 + slower_by
        assert np.flatnonzero(compare(times).slow).tolist() == ([2] if slower_by else [])


def test_the_ranks_of_a_job_are_compared_with_their_role() -> None:
    """Two stages, two replicas: stage 1 does more by design, and rank 1 is slower than rank 0 does its like."""
    slow = SlowRank(rank=1, factor=1.2)
    graph = run(Job(ranks=4, pp=2, steps=4, layers=3, kernel_us=80.0, seed=3, slow_ranks=(slow,)))
    found = slow_ranks(graph)
    assert np.flatnonzero(found.slow).tolist() == [1]
    assert found.steps.tolist() == [5, 6, 7, 8]
    assert found.when.sum(axis=1).tolist() == [0, 4, 0, 0]


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


@pytest.mark.parametrize("constant", ["_CHANCE_OF_DELAYS"])
def test_a_clear_conclusion_does_not_depend_on_a_constant_slow_steps(
    constant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def parts_of(names: list[Times], alone: Times | None = None) -> Parts:
    every = np.stack(names)
    nothing = np.zeros(every.shape[1:])
    return lambda rows: ((nothing if alone is None else alone)[rows], every[:, rows])


def test_three_equal_pauses_are_no_chance_though_steps_vary() -> None:
    """What varies in a step is elsewhere. Unequal pauses of ranks in turn are chance, and some are made up for."""
    rng = np.random.default_rng(5)
    rest = 1e9 * rng.uniform(0.5, 1.5, (4, 3))
    pause = np.zeros((4, 3))
    pause[2] = [1.0e9, 1.001e9, 1.002e9]
    named = compare(rest + pause, parts=parts_of([pause, rest]))
    assert not compare(rest + pause).slow.any()
    assert named.slow.tolist() == [False, False, True, False]
    assert not compare(rest, parts=parts_of([pause, rest - pause])).slow.any()
    turns = np.abs(rng.normal(0, 1e9, (4, 3)))
    assert not compare(rest + turns, parts=parts_of([turns, rest])).slow.any()


def test_work_that_only_one_rank_does_in_some_steps_is_no_chance() -> None:
    """It must recur, explain the excess, and be of one rank."""
    (times,) = jobs("normal", (4, 10), 1)
    extra = np.zeros_like(times)
    extra[0, [2, 6]] = STEP_NS
    found = compare(times + extra, parts=parts_of([extra], extra))
    assert found.slow.tolist() == [True, False, False, False]
    assert np.flatnonzero(found.when[0]).tolist() == [2, 6]
    assert not compare(times + extra, parts=parts_of([extra], 0.3 * extra)).slow.any()
    before = np.roll(extra, -1, axis=1)  # behind the last collective of the step before
    assert compare(times + extra, parts=parts_of([before], before)).slow.tolist() == found.slow.tolist()
    shared = np.where(extra.any(axis=0), 1.2e7 + times % 1e5, 0)  # all do it, one takes longer each time
    rare = shared + extra * (1 + times / 1e12)
    assert compare(times + rare, parts=parts_of([rare])).slow.tolist() == found.slow.tolist()
    assert not compare(times + shared, parts=parts_of([shared])).slow.any()
    once = np.where(np.arange(10) == 2, extra, 0)
    assert not compare(times + once, parts=parts_of([once], once)).slow.any()
    both = extra + np.roll(extra, (1, 1), (0, 1))
    assert not compare(times + both, parts=parts_of([both], both)).slow.any()


def test_equal_delays_of_one_piece_of_work_are_no_chance() -> None:
    """Three of six steps, in the loader of a rank; unequal ones, or such of two ranks, may strike any rank."""
    (times,) = jobs("normal", (4, 6), 1)
    loader = 0.1 * times
    for late, slow in (({1: (1, 1, 1)}, 1), ({1: (1, 0.4, 2)}, -1), ({1: (1, 1), 2: (1,)}, -1)):
        held = np.zeros_like(times)
        steps = iter((1, 3, 5))
        for rank, lengths in late.items():
            for length in lengths:
                held[rank, next(steps)] = length * STEP_NS
        assert (
            np.flatnonzero(compare(times + held, parts=parts_of([loader + held])).slow).tolist() == [slow][: slow + 1]
        )
