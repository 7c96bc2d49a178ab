"""Waits that no recording shows, because the other side was slower in it, meet a change that makes them bind.

The jobs are threads that are started in each step and joined; each job is generated again with the change, which is
the truth.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from tests.strategies import OTHER, Json, annotation, load, op, step

WAKE_US = 120
STEPS = 12


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
