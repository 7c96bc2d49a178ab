"""Who waits for a thread may be waited for by it: queues of any capacity, in which only one side ever waited."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.meets import meets
from tests.strategies import OTHER, Json, annotation, load, op, step

STEPS, WAKE_US = 12, 120


def queued(put_us: int, get_us: int, capacity: int, steps: int = STEPS) -> list[Json]:
    """Return a main thread that makes an item in each step and hands it over, and a thread that takes each of them."""
    events: list[Json] = []
    taken: list[int] = []
    at = free = 0
    for number in range(steps):
        begin, made = at, at + put_us
        events.append(op("make", begin + 20, put_us - 20))
        full = number - capacity - 1
        at = max(made + 30, taken[full] + WAKE_US) if full >= 0 else made + 30
        takes = max(at + WAKE_US, free + 30)
        taken.append(takes)
        free = takes + get_us
        events += [annotation("use", takes, get_us, OTHER), op("work", takes + 10, get_us - 20, OTHER)]
        events.append(step(number, begin, at - begin))
        at += 25
    return events


def step_ns(graph: DependencyGraph) -> float:
    return float(np.mean(np.diff(np.sort(graph.time[graph.step_spans.start]))))


@pytest.mark.parametrize("capacity", [0, 1, 2, 4])
def test_a_queue_holds_its_maker_up_whatever_its_capacity(capacity: int) -> None:
    """The interval holds queues of any capacity: the recording, in which the taker always waited, bounds none."""
    before, after = load(queued(20_000, 9_000, capacity)), load(queued(2_000, 9_000, capacity))
    outcome = hg.what_if(before).scale(factor=0.1, op="make").run()
    truth = step_ns(before) / step_ns(after)
    assert outcome.low * 0.97 <= truth <= outcome.high * 1.03
    assert hg.replay(before).max_error_ns == 0


def test_a_thread_that_is_waited_for_anyway_leaves_no_doubt() -> None:
    """Its own place in the queue is known."""
    done, asks = meets(load(queued(9_000, 20_000, 1)))
    assert len(done) == len(asks) == 0


def test_the_wait_in_turn_was_over_in_the_recording() -> None:
    graph = load(queued(20_000, 9_000, 2))
    done, asks = meets(graph)
    assert (graph.time[done] <= graph.time[asks]).all()


def gathered(train_us: int, combine_us: int, call_us: int, steps: int = STEPS) -> list[Json]:
    """Return a main thread that trains while a pool of two threads calls, and combines what all made."""
    events: list[Json] = []
    at = 0
    for number in range(steps):
        asks = at + 60
        called = asks + WAKE_US + call_us
        trained = asks + 30 + train_us
        combines = max(trained + 40, called + WAKE_US)
        first = OTHER + number % 2
        second = OTHER + 1 - number % 2
        events += [op("call", asks + WAKE_US, call_us, first), op("call", asks + WAKE_US + 40, call_us - 900, second)]
        events.append(op("train", asks + 30, train_us))
        over = combines + combine_us
        events += [op("combine", combines, combine_us), step(number, at, over + 20 - at)]
        at = over + 40
    return events


@pytest.mark.parametrize("call_us", [12_000, 30_000])
def test_what_was_always_there_in_time_may_be_needed_by_the_first_that_begins_then(call_us: int) -> None:
    """Calls that were hidden behind training come before combining, and not beside it, once training is faster."""
    before, after = load(gathered(40_000, 15_000, call_us)), load(gathered(2_000, 15_000, call_us))
    outcome = hg.what_if(before).scale(factor=0.05, op="train").run()
    truth = step_ns(before) / step_ns(after)
    assert outcome.low * 0.97 <= truth <= outcome.high * 1.03
