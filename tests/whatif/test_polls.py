"""Loops that wait with a timeout are over with what they wait for; pauses of a thread's own are no such loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.polls import poll_loops
from tests.strategies import OTHER, Json, load, op, step

STEPS = 9
WAKE_US = 150


def watched(write_us: int, train_us: int = 13_000, timeout_us: int = 9_000, report_us: int = 3_000) -> list[Json]:
    """Return steps in which a thread writes while the main one trains, then joins it with a timeout and reports."""
    events: list[Json] = []
    begin = 0
    for number in range(STEPS):
        started = begin + 200
        written = started + 100 + write_us
        events.append(op("write", started + 100, write_us, OTHER + number))
        trains = train_us + 37 * number % 11 * 100
        events.append(op("train", started, trains))
        at = started + trains
        while written + WAKE_US > at + timeout_us:
            at += timeout_us + 60 + 17 * number % 70
            events.append(op("report", at, report_us))
            at += report_us
        over = max(at, written + WAKE_US) + 40
        events.append(step(number, begin, over - begin))
        begin = over + 90
    return events


def step_ns(graph: DependencyGraph) -> float:
    return float(np.mean(np.diff(np.sort(graph.time[graph.step_spans.start]))))


@given(st.integers(40_000, 90_000), st.floats(0.1, 0.6))
@settings(max_examples=12, deadline=None)
def test_a_loop_of_waits_that_run_out_is_shorter_if_what_it_waits_for_is(write_us: int, factor: float) -> None:
    """The interval holds the truth, in which the loop has fewer rounds: each job is generated again with the change."""
    before = load(watched(write_us))
    assume(len(poll_loops(before).over) == STEPS)  # what is done while the loop does something else releases no wait
    after = load(watched(round(factor * write_us)))
    outcome = hg.what_if(before).scale(factor=factor, op="write").run()
    truth = step_ns(before) / step_ns(after)
    report = 1 + 3_000_000 / step_ns(after)  # a report that has begun is finished
    assert outcome.low * 0.97 <= truth <= outcome.high * 1.03 * report


def test_each_loop_begins_behind_the_training_of_its_step() -> None:
    graph = load(watched(66_000))
    loops = poll_loops(graph)
    names = graph.activities.name
    assert len(loops.begin) == STEPS, "the last one, too, though no step follows"
    assert {graph.names[name] for name in names[loops.begin >> 1]} == {"train"}
    assert {graph.names[name].partition("#")[0] for name in names[loops.over >> 1]} == {"ProfilerStep"}
    assert (graph.time[loops.begin] < graph.time[loops.over]).all()


@pytest.mark.parametrize("pauses_us", [9_000, 15_000])
def test_pauses_that_no_other_thread_ends_are_no_loop(pauses_us: int) -> None:
    events: list[Json] = []
    for number in range(STEPS):
        begin = number * (2 * pauses_us + 7_000)
        events += [op("train", begin + 200, 3_000), op("report", begin + 3_200 + pauses_us, 3_000)]
        events.append(step(number, begin, 2 * pauses_us + 6_900))
    assert not len(poll_loops(load(events)).over)
