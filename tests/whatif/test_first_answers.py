"""A wait for the first of several answers is a minimum: jobs are generated again with a change, which is the truth."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.first_answers import first_answers
from tests.strategies import OTHER, Json, load, op, step

STEPS, WAKE_US, RANK_US, THREADS = 12, 120, 8_000, 4


def hedged(
    primary_us: Sequence[int],
    backup_us: Sequence[int],
    awaited: Sequence[str] = ("first",),
) -> list[Json]:
    """Return a main thread that asks two backends in each step and goes on with an answer, on a pool of threads.

    Args:
        primary_us: how long the first backend takes, in turn.
        backup_us: how long the second backend takes, in turn.
        awaited: what the main thread waits for, in order: `first`, `primary` or `backup`.
    """
    events: list[Json] = []
    free = [0] * THREADS
    at = 0
    for number in range(STEPS):
        begin = at
        ends: dict[str, int] = {}
        for place, (name, lasts) in enumerate((("primary", primary_us), ("backup", backup_us))):
            takes = lasts[number % len(lasts)]
            thread = min(range(THREADS), key=lambda each: free[each])
            start = max(begin + 40 + 20 * place + WAKE_US, free[thread] + 30)
            events.append(op(name, start, takes, OTHER + thread))
            ends[name] = free[thread] = start + takes
        ends["first"] = min(ends.values())
        at += 100
        for what in awaited:
            at = max(at, ends[what] + WAKE_US)
        events.append(op("rank", at, RANK_US))
        at += RANK_US + 30
        events.append(step(number, begin, at - begin))
        at += 25
    return events


def holds(outcome: hg.Outcome, before: DependencyGraph, after: DependencyGraph) -> bool:
    """Return whether the interval, around the predicted step, holds the step of the job that was generated again."""
    truth = step_ns(before) / step_ns(after)
    predicted = outcome.baseline_step_ns / outcome.step_ns
    low = predicted * outcome.low / outcome.speedup
    high = predicted * outcome.high / outcome.speedup
    return low * 0.98 <= truth <= high * 1.02


def step_ns(graph: DependencyGraph) -> float:
    return hg.what_if(graph).run().baseline_step_ns


@given(st.integers(25, 60), st.floats(0.3, 0.8), st.floats(0.2, 0.9))
@settings(max_examples=10, deadline=None)
def test_an_interval_holds_the_minimum(slow_ms: int, share: float, factor: float) -> None:
    backup = round(1000 * slow_ms * share)
    before = load(hedged([1000 * slow_ms], [backup]))
    after = load(hedged([round(1000 * slow_ms * factor)], [backup]))
    outcome = hg.what_if(before).scale(factor=factor, op="primary").run()
    assert holds(outcome, before, after)


def test_a_slower_winner_is_replaced_by_the_other_work() -> None:
    before = load(hedged([45_000], [30_000]))
    after = load(hedged([45_000], [90_000]))
    outcome = hg.what_if(before).scale(factor=3, op="backup").run()
    assert holds(outcome, before, after)


@pytest.mark.parametrize("awaited", [("backup", "primary"), ("primary",), ("primary", "backup")])
def test_works_that_are_all_waited_for_leave_no_doubt(awaited: tuple[str, ...]) -> None:
    """The thread waits for the longer work, or for both."""
    graph = load(hedged([45_000], [30_000], awaited))
    assert len(first_answers(graph).end) == 0


def test_a_work_that_is_dropped_after_an_earlier_end_refutes_the_minimum() -> None:
    """The dropped work often ended first, and the thread went on waiting."""
    graph = load(hedged([45_000, 20_000], [30_000], ("backup",)))
    assert len(first_answers(graph).end) == 0


def test_one_early_end_in_eight_refutes_the_minimum() -> None:
    """In the other steps the dropped task is still running, as a second answer would be."""
    primary_us = [45_000] * 7 + [20_000]
    graph = load(hedged(primary_us, [30_000], ("backup",)))
    assert len(first_answers(graph).end) == 0


def test_unchanged_works_change_nothing() -> None:
    graph = load(hedged([45_000], [30_000]))
    answers = first_answers(graph)
    assert (graph.time[answers.end] > graph.time[answers.wait]).all()
    assert len(answers.end) >= STEPS - 2
    assert hg.replay(graph).max_error_ns == 0
