"""Waits that no recording shows, because the other side was slower in it, meet a change that makes them bind.

The jobs are threads that hand work over through queues of a known capacity, and meet at barriers; each is generated
again with the change, which is the truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from tests.strategies import OTHER, Json, annotation, load, op, step

WAKE_US = 120
STEPS = 12


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


def shards(train_us: int, shard_us: tuple[int, ...], steps: int = STEPS) -> list[Json]:
    """Return a main thread that starts threads in each step, computes, and joins them all."""
    events: list[Json] = []
    at = 0
    for number in range(steps):
        over = at + 60 + train_us
        events.append(op("train", at + 60, train_us))
        for place, takes in enumerate(shard_us):
            thread = OTHER + number * len(shard_us) + place
            events.append(annotation(f"shard_{place}", at + 40 + 90, takes, thread))
            events.append(op("load", at + 140, takes - 20, thread))
            over = max(over, at + 130 + takes + WAKE_US)
        events.append(step(number, at, over + 20 - at))
        at = over + 70
    return events


def makespan(events: list[Json]) -> int:
    graph = load(events)
    return int(graph.time.max()) - graph.origin_ns


def step_ns(graph: DependencyGraph) -> float:
    return float(np.mean(np.diff(np.sort(graph.time[graph.step_spans.start]))))


@given(st.integers(12_000, 40_000), st.floats(0.2, 0.8), st.floats(0.1, 0.5))
@settings(max_examples=12, deadline=None)
def test_the_other_thread_binds_once_the_one_that_bound_is_faster(slow_us: int, other: float, factor: float) -> None:
    works = (slow_us, round(other * slow_us))
    quick = (round(factor * slow_us), works[1])
    graph = load(shards(2_000, works))
    outcome = hg.what_if(graph).scale(factor=factor, op="shard_0").run()
    assert outcome.makespan_ns == pytest.approx(makespan(shards(2_000, quick)), rel=0.01)


@given(st.integers(15_000, 40_000), st.floats(0.2, 0.8))
@settings(max_examples=12, deadline=None)
def test_threads_that_were_always_joined_in_time_may_bind(train_us: int, share: float) -> None:
    shard = round(share * train_us)
    graph = load(shards(train_us, (shard, shard // 2)))
    outcome = hg.what_if(graph).scale(factor=0.05, op="train").run()
    truth = makespan(shards(train_us // 20, (shard, shard // 2)))
    recorded = makespan(shards(train_us, (shard, shard // 2)))
    assert outcome.low * 0.98 <= recorded / truth <= outcome.high * 1.02


@pytest.mark.parametrize("capacity", [0, 1, 2, 4])
def test_a_queue_holds_its_maker_up_whatever_its_capacity(capacity: int) -> None:
    """The interval holds queues of any capacity: the recording, in which the taker always waited, bounds none."""
    before, after = load(queued(20_000, 9_000, capacity)), load(queued(2_000, 9_000, capacity))
    outcome = hg.what_if(before).scale(factor=0.1, op="make").run()
    truth = step_ns(before) / step_ns(after)
    assert outcome.low * 0.97 <= truth <= outcome.high * 1.03
    assert hg.replay(before).max_error_ns == 0
