"""Of threads that meet, the last one goes on: a tree of sums, generated again with a change, which is the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.last_parts import last_parts
from tests.strategies import OTHER, Json, load, op, step

STEPS, WAKE_US, COMBINE_US, TRAIN_US, UPDATE_US = 12, 120, 7_000, 12_000, 5_000


def summed(leaf_us: Sequence[int], early: Sequence[int] = ()) -> list[Json]:
    """Return a main thread that waits for the root of a tree of four leaves, each on a thread.

    Of the two threads below a node, the last one combines and goes up.

    Args:
        leaf_us: how long each leaf takes; the third one has a name of its own.
        early: steps in which the second leaf takes 4 ms more than the first one, and the first thread combines anyway.
    """
    events: list[Json] = []
    at = 0
    for number in range(STEPS):
        begin = at
        starts = [begin + WAKE_US + 30 * leaf for leaf in range(4)]
        lasts = [*leaf_us]
        if number in early:
            lasts[1] = leaf_us[0] + 4_000
        ends = [starts[leaf] + lasts[leaf] for leaf in range(4)]
        names = ["leaf", "leaf", "long", "leaf"]
        events += [op(names[leaf], starts[leaf], lasts[leaf], OTHER + leaf) for leaf in range(4)]
        climbed = []
        for pair in ((0, 1), (2, 3)):
            last = max(pair, key=lambda leaf: leaf_us[leaf])
            events.append(op("combine", ends[last] + 20, COMBINE_US, OTHER + last))
            climbed.append((ends[last] + 20 + COMBINE_US, last))
        over, last = max(climbed)
        events.append(op("combine", over + 20, COMBINE_US, OTHER + last))
        trained = begin + 40 + TRAIN_US
        events.append(op("train", begin + 40, TRAIN_US))
        at = max(trained + 30, over + 20 + COMBINE_US + WAKE_US)
        events.append(op("update", at, UPDATE_US))
        at += UPDATE_US + 20
        events.append(step(number, begin, at - begin))
        at += 25
    return events


def step_ns(graph: DependencyGraph) -> float:
    return hg.what_if(graph).run().baseline_step_ns


@given(st.permutations([13_000, 26_000, 18_000]), st.floats(0.1, 1.5))
@settings(max_examples=12, deadline=None)
def test_an_interval_holds_the_job_in_which_another_thread_is_last(others: Sequence[int], factor: float) -> None:
    first, second, fourth = others
    before = load(summed([first, second, 45_000, fourth]))
    after = load(summed([first, second, round(45_000 * factor), fourth]))
    outcome = hg.what_if(before).scale(factor=factor, op="long").run()
    truth = step_ns(before) / step_ns(after)
    assert outcome.low * 0.98 <= truth <= outcome.high * 1.02


def test_a_thread_that_goes_on_needs_the_end_beside_it_of_as_many_operators() -> None:
    graph = load(summed([13_000, 26_000, 45_000, 18_000]))
    end, begin = last_parts(graph)
    acts = graph.activities
    assert len(end) > STEPS
    assert (graph.time[end] < graph.time[begin]).all()
    assert {graph.names[name] for name in acts.name[begin >> 1]} == {"combine"}
    assert (acts.lane[end >> 1] != acts.lane[begin >> 1]).all()


def test_unchanged_work_changes_nothing() -> None:
    outcome = hg.what_if(load(summed([13_000, 26_000, 45_000, 18_000]))).scale(factor=1, op="long").run()
    assert outcome.low == outcome.high == 1


@pytest.mark.parametrize("early", [(), range(0, STEPS, 4)])
def test_work_that_goes_on_before_an_end_beside_it_refutes_the_need(early: Sequence[int]) -> None:
    graph = load(summed([26_000, 13_000, 45_000, 18_000], early))
    _, begin = last_parts(graph)
    acts = graph.activities
    names = np.array(graph.names)[acts.name]
    with_long = acts.lane[names == "long"][0]
    needs_of_first = acts.lane[begin >> 1] != with_long
    assert needs_of_first.any() == (not early)


def test_threads_that_all_end_need_nothing() -> None:
    tree = summed([45_000, 44_000, 43_000, 42_000])
    events = [event for event in tree if event["name"] != "combine"]
    assert len(last_parts(load(events))[0]) == 0
