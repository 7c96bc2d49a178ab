"""The interval of a prediction."""

from __future__ import annotations

import math

import numpy as np
import pytest

import htagraph as hg
from htagraph.queries.weights import initial
from htagraph.simulate import Job, ScaleKernels, simulate
from htagraph.whatif.interval import Interval, changes_nothing, spread
from htagraph.whatif.interval_cause import IntervalCause
from tests.reach import DATA, graph_of
from tests.strategies import OTHER, load, op, step

QUIET = 0.004
"""How much the mean step differs from run to run where each call always takes the same, relative."""


def test_nothing_changed_is_certain() -> None:
    graph = graph_of(DATA / "demo")
    assert changes_nothing(graph, initial(graph))
    outcome = hg.what_if(graph).scale(factor=1).run()
    assert (outcome.low, outcome.speedup, outcome.high) == (1.0, 1.0, 1.0)
    assert not changes_nothing(graph, hg.what_if(graph).scale(factor=0.5).state)


def test_chance_grows_with_the_differences_of_steps_and_the_size_of_the_effect() -> None:
    even, uneven = np.full(10, 100.0), np.array([90.0, 110.0, 85, 100, 122, 91, 104, 99, 87, 112])
    assert spread(1.0, even, QUIET) < 0.01
    assert spread(2.0, even, QUIET) > spread(1.1, even, QUIET)
    few = spread(1.0, uneven[:4], QUIET)
    assert few > spread(1.0, uneven, QUIET) > 0.05
    assert (
        spread(1.0, even, QUIET) < spread(1.0, np.zeros(0), QUIET) < 0.06
    )  # of other jobs, where the recording does not show it
    assert spread(1.0, np.array([100.0]), QUIET) == spread(1.0, np.zeros(0), QUIET)


def test_steps_that_take_turns_are_known_better_than_independent_ones() -> None:
    in_turn = np.tile([50.0, 50.0, 200.0], 3)
    assert spread(1.0, in_turn, QUIET) < 0.01
    assert spread(1.0, np.sort(in_turn), QUIET) > 0.3


def test_nine_of_ten_means_of_other_runs_are_inside() -> None:
    draw = np.random.default_rng(5)
    inside = 0
    for _ in range(300):
        one, other = draw.normal(100, 10, (2, 9))
        inside += abs(math.log(other.mean() / one.mean())) <= spread(1.0, one, QUIET)
    assert inside >= 0.87 * 300


def test_an_interval_with_gain_and_loss_is_too_wide_to_act_on() -> None:
    assert Interval(0.9, 1.2, IntervalCause.NONE, (0.9, 1.2)).too_wide
    assert not Interval(0.99, 1.05, IntervalCause.NONE, (0.99, 1.05)).too_wide
    assert not Interval(1.1, 1.4, IntervalCause.NONE, (1.1, 1.4)).too_wide
    assert Interval(1.1, 2.4, IntervalCause.NONE, (1.1, 2.4)).too_wide


def test_the_more_steps_differ_the_wider_the_interval() -> None:
    def job(lengths: list[int]) -> tuple[float, float, tuple[int, int]]:
        events, at = [], 0
        for number, length in enumerate(lengths):
            events += [step(number, at, length + 10), op("a", at, 10), op("b", at + 10, length)]
            at += length + 10
        outcome = hg.what_if(load(events)).scale(name="a", factor=0.5).run()
        return outcome.low, outcome.high, outcome.saved_range_ns

    same, differ = job([90] * 8), job([60, 120, 90, 100, 70, 130, 80, 70])
    assert differ[0] < same[0] < same[1] < differ[1]
    for low, high in (same[2], differ[2]):
        assert 0 < 40_000 - low < 5_000, "what the recorded run saves, 5 µs in each of 8 steps, does not depend on it"
        assert high == 40_000, "nothing saves more than its own time"


@pytest.mark.parametrize("seed", [3, 4])
def test_a_simulated_job_under_change_is_inside(seed: int, tmp_path: object) -> None:
    job = Job(ranks=2, layers=2, steps=4, seed=seed)
    simulate(job).write(str(tmp_path), suffix=".json", truth=False)
    outcome = hg.what_if(hg.load(str(tmp_path))).scale(kind="computation", name="*gemm*", factor=0.5).run()
    change = ScaleKernels(name="*gemm*", what="compute", factor=0.5)
    truth = simulate(job.model_copy(update={"changes": (change,)})).mean_step_ns
    speedup = outcome.baseline_mean_step_ns / truth
    assert outcome.low <= speedup <= outcome.high


def test_an_interval_of_one_step_says_that_it_does_not_show_how_much_steps_differ() -> None:
    graph = load([step(1, 0, 100), op("a", 0, 40), op("b", 41, 59)])
    outcome = hg.what_if(graph).scale(factor=0.5, name="a").run()
    assert outcome.interval_cause == "a recording of so few steps does not show how much they differ"
    assert outcome.high / outcome.low > 1.11
    assert not any("cannot tell" in note for note in outcome.notes)


def _written(after_ms: float) -> hg.DependencyGraph:
    """A thread writes for 40 of 60 ms what the main thread hands over in each second step."""
    events = [step(i, 30_000 * i, 30_000) for i in range(10)]
    events += [op("train", 30_000 * i + 10, 29_900) for i in range(10)]
    events += [op("write", 60_000 * i + 30_000 + 1000 * after_ms, 40_000, tid=OTHER) for i in range(5)]
    return load(events)


def test_a_thread_that_takes_each_second_item_holds_up_the_one_that_makes_them() -> None:
    outcome = hg.what_if(_written(0.1)).scale(name="train", factor=0.1).run()
    assert outcome.mean_step_ns / 1e6 > 16  # the writes alone take 20 ms a step


def test_steps_that_leave_other_work_behind_may_have_to_wait_for_it() -> None:
    outcome = hg.what_if(_written(2)).scale(name="train", factor=0.1).run()  # too late for a hand-over
    at_most_ms = outcome.mean_step_ns * outcome.speedup / outcome.low / 1e6
    assert outcome.mean_step_ns / 1e6 < 5 < 18 < at_most_ms  # the writes alone take 20 ms a step
    assert "ahead of work of other threads" in outcome.interval_cause
