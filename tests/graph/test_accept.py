"""What is too regular for chance is a wait, and what is not is none: as often as is said."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph import EdgeKind
from htagraph.core.arrays import Array
from htagraph.graph.accept import (
    Ends,
    after_idle,
    as_own_work,
    behind_ends,
    confidence,
    is_refuted,
    median_of_others,
    of_agreement,
    of_each,
    of_recorded,
    ratio,
)
from htagraph.graph.tolerances import LIMITS
from tests.oracles import edges_by_name
from tests.strategies import OTHER, Json, load, op

SEEDS = st.integers(0, 2**32 - 1)
IDLE_NS = 20_000_000
TRIALS = 300


def at_random(draw: np.random.Generator, count: int, usual_ns: float) -> Ends:
    """Return ends that come at random, so many in between 100 waits of 20 ms, one per `usual_ns` on average."""
    time = np.cumsum(draw.exponential(usual_ns, count)).astype(np.int64)
    return Ends.of(np.arange(count), time)


def of_moments(ends: Ends, moment: Array) -> float:
    """Return how many times likelier waits until some moments are if the ends released them than by chance."""
    idle = np.full(len(moment), IDLE_NS)
    return float(np.exp(ratio(behind_ends(ends, moment, idle, LIMITS.turn_ns))[0]))


@given(SEEDS, st.integers(2, 30), st.floats(5e5, 5e7))
@settings(max_examples=15)
def test_a_ratio_exceeds_x_by_chance_once_in_x_times(seed: int, waits: int, usual_ns: float) -> None:
    draw = np.random.default_rng(seed)
    ratios = []
    for _ in range(TRIALS):
        ends = at_random(draw, 400, usual_ns)
        moment = draw.integers(ends.time[20], ends.time[-20], waits)
        ratios.append(of_moments(ends, moment))
    for x in (4, 10, 25, 100):
        spread = 4 * np.sqrt(TRIALS / x) + 2
        assert np.count_nonzero(np.array(ratios) >= x) <= TRIALS / x + spread


@given(SEEDS, st.integers(4, 30), st.floats(1e7, 1e8), st.integers(5_000, 400_000), st.floats(0, 0.5))
def test_waits_that_end_a_delay_behind_an_end_are_accepted(
    seed: int, waits: int, usual_ns: float, delay_ns: int, jitter: float
) -> None:
    draw = np.random.default_rng(seed)
    ends = at_random(draw, 400, usual_ns)
    released = draw.choice(ends.time[20:-20], waits, replace=False)
    moment = released + (delay_ns * draw.uniform(1 - jitter, 1 + jitter, waits)).astype(np.int64)
    odds = behind_ends(ends, moment, np.full(waits, IDLE_NS), LIMITS.turn_ns)
    assert confidence(odds) >= 70


def test_of_the_roles_that_are_accepted_so_many_wait_as_is_said() -> None:
    """One in 26 waits, each wait with the share of its role that ends behind the candidate's end."""
    draw = np.random.default_rng(7)
    said, right = [], []
    for number in range(6000):
        waits, waited = int(draw.integers(2, 9)), number % 26 == 0
        ends = at_random(draw, 300, float(10 ** draw.uniform(6, 7.5)))
        moment = draw.integers(ends.time[20], ends.time[-20], waits)
        released = (draw.random(waits) < draw.random()) & waited
        at = ends.last(moment)
        moment = np.where(
            released, ends.time[at] + draw.integers(10_000, 10 ** int(draw.integers(5, 7)), waits), moment
        )
        sure = confidence(behind_ends(ends, moment, np.full(waits, IDLE_NS), LIMITS.turn_ns))
        if sure:
            said.append(sure / 100)
            right.append(released.mean())
    assert len(said) > 30
    assert np.mean(right) >= np.mean(said) - 0.05


@pytest.mark.parametrize("late_ns", [-200_000, -5_000])
def test_waits_that_are_over_before_the_end_are_refuted(late_ns: int) -> None:
    time = np.arange(1, 31) * 30_000_000
    ends = Ends.of(np.arange(30), time)
    assert not confidence(behind_ends(ends, time + late_ns, np.full(30, IDLE_NS), LIMITS.turn_ns))
    assert confidence(behind_ends(ends, time - late_ns, np.full(30, IDLE_NS), LIMITS.turn_ns)) == 90


def test_two_waits_may_agree_by_chance() -> None:
    time = np.arange(1, 3) * 30_000_000
    assert not confidence(behind_ends(Ends.of(np.arange(2), time), time + 150_000, np.full(2, IDLE_NS), LIMITS.turn_ns))


LENGTHS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "any": lambda draw, count: draw.integers(1_000_000, 20_000_000, count),
    "alike": lambda draw, count: draw.normal(2e7, 1e6, count).astype(np.int64),
    "of two sorts": lambda draw, count: np.where(draw.random(count) < 0.5, 5_000_000, 30_000),
    "equal": lambda draw, count: np.full(count, 5_000_000),
}
"""How long pauses, and pieces of work beside them, last, ns."""


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("count", [3, 6, 15, 40])
def test_work_of_a_threads_own_is_hardly_ever_taken_for_a_wait(lengths: str, count: int) -> None:
    draw = np.random.default_rng(count)
    accepted = 0
    for _ in range(TRIALS):
        lasts = LENGTHS[lengths](draw, count)
        until = (1.1 * LENGTHS[lengths](draw, count)).astype(np.int64)
        accepted += confidence(as_own_work(lasts, until, int(lasts.max()), fitted=False)) > 0
    assert accepted <= TRIALS / 25


@given(SEEDS, st.integers(6, 40), st.integers(2_000, 200_000))
def test_pauses_that_end_with_work_of_any_length_wait_for_it(seed: int, count: int, late_ns: int) -> None:
    draw = np.random.default_rng(seed)
    until = draw.integers(1_000_000, 20_000_000, count)
    lasts = until + draw.integers(0, late_ns, count)
    assert confidence(as_own_work(lasts, until, int(lasts.max()), fitted=False)) >= 70


@given(SEEDS, st.integers(3, 40))
@settings(max_examples=20)
def test_recorded_waits_are_for_work_that_they_end_with_and_hardly_ever_for_other_work(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    free = np.arange(count) * 50_000_000
    over = free + draw.integers(1_000_000, 20_000_000, count)
    awaited, explained = of_recorded(over, free, over - draw.integers(0, 19_000, count), 20_000, 2_000)
    assert explained.all()
    assert ratio(awaited)[0] > np.log(100)
    accepted = 0
    for _ in range(TRIALS):
        beside = free + draw.integers(0, over - free)
        accepted += ratio(of_recorded(over, free, beside, 20_000, 2_000)[0])[0] > np.log(10)
    assert accepted <= TRIALS / 10


@given(SEEDS, st.integers(1, 30), st.integers(0, 30))
@settings(max_examples=20)
def test_work_right_behind_ends_waited_for_them_however_rare_such_work_of_its_role_is(
    seed: int, released: int, elsewhere: int
) -> None:
    draw = np.random.default_rng(seed)
    ends = Ends.of(np.arange(100), np.arange(1, 101) * 5_000_000)
    at = draw.choice(100, released + elsewhere, replace=released + elsewhere > 100)
    moment = ends.time[at] + np.where(np.arange(len(at)) < released, 4_000, draw.integers(1_000_000, 4_000_000))
    sure = of_each(after_idle(ends, moment, moment - 3_000_000, LIMITS.window_ns))
    assert not sure[released:].any()
    assert (sure[:released] >= 70).all() or released < elsewhere / 8


def test_of_the_work_of_idle_streams_that_is_accepted_so_much_waited_as_is_said() -> None:
    """Half of the roles wait, each work with the share of its role that does; else it starts at any moment."""
    draw = np.random.default_rng(5)
    said, right = [], []
    for number in range(3000):
        count = int(draw.integers(1, 9))
        ends = at_random(draw, 300, float(10 ** draw.uniform(4.5, 6.5)))
        moment = draw.integers(ends.time[20], ends.time[-20], count)
        waited = (draw.random(count) < draw.random()) & (number % 2 == 0)
        moment = np.where(waited, ends.time[ends.last(moment)] + draw.integers(0, LIMITS.window_ns, count), moment)
        sure = of_each(after_idle(ends, moment, moment - draw.integers(20_000, 2_000_000, count), LIMITS.window_ns))
        said += sure[sure > 0].tolist()
        right += waited[sure > 0].tolist()
    assert len(said) > 1000
    assert np.mean(right) >= np.mean(said) / 100 - 0.02


def test_agreement_is_evidence_against_a_known_chance() -> None:
    assert confidence(of_agreement(np.ones(3, np.bool_), np.full(3, 0.01))) > 0
    assert not confidence(of_agreement(np.ones(3, np.bool_), np.full(3, 0.5)))


def test_work_that_ends_after_a_wait_is_over_refutes_it_but_for_damaged_records() -> None:
    assert not is_refuted(np.arange(200) > 0)
    assert is_refuted(np.arange(200) > 2)


def test_many_waits_tell_as_much_as_a_sample_of_them() -> None:
    time = np.arange(1, 5001) * 30_000_000
    odds = behind_ends(Ends.of(np.arange(5000), time), time + 150_000, np.full(5000, IDLE_NS), LIMITS.turn_ns)
    assert confidence(odds) == confidence(odds[:, :300]) == 90
    assert ratio(odds)[0] < 5000


@given(st.lists(st.integers(0, 50), min_size=2, max_size=9))
def test_the_median_of_the_others_is_that_of_all_others(values: list[int]) -> None:
    of = np.array(values)
    assert median_of_others(of).tolist() == [float(np.median(np.delete(of, at))) for at in range(len(of))]


@pytest.mark.parametrize("fresh", [False, True])
def test_evidence_is_that_of_a_role_on_whatever_thread_it_is(*, fresh: bool) -> None:
    """A thread per snapshot reads, waits until the main thread has trained, and writes: once on each thread."""
    events: list[Json] = []
    for number in range(6):
        begin, thread = 20_000 * number + 700 * number * number, OTHER + number * fresh
        events += [op("train", begin, 9_000), op("read", begin + 300, 500, thread)]
        events += [op("write", begin + 9_150 + 13 * number, 4_000, thread)]
    found = [(source, target) for source, target, _ in edges_by_name(load(events), EdgeKind.THREAD)]
    assert found.count(("train.end", "write.start")) == 6
