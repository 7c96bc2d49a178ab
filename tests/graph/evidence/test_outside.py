"""Waits for processes that were not recorded are inferred from their pace, and never certain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.core.kinds import UNCERTAIN, Provenance
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, step

PACE_US = 40_000
WORK = [20_000, 23_000, 19_000, 21_500, 20_500, 24_000, 18_000, 22_000, 21_000, 20_000]


def learner(works: list[int], waits: list[int], more: list[Json] | None = None) -> DependencyGraph:
    """Return the graph of a loop that is in the region `fetch` for each item, and then works on it; µs."""
    events, at = list(more or []), 0
    for number, (work, wait) in enumerate(zip(works, waits, strict=True)):
        events += [annotation("fetch", at, wait), op("learn", at + wait, work)]
        events += [launch(at + wait + 1, 2, number + 1), kernel(COMPUTE, at + wait + 10, work - 20, number + 1)]
        at += wait + work
    return load(events)


def paced(works: list[int]) -> list[int]:
    """Return how long each fetch waits for a process that makes an item in a steady time."""
    return [PACE_US, *(PACE_US - work for work in works[:-1])]


def is_outside(graph: DependencyGraph) -> bool:
    return EdgeKind.OUTSIDE in graph.edges.kind


def test_a_region_that_makes_up_for_the_work_before_it_waits() -> None:
    graph = learner(WORK, paced(WORK))
    assert is_outside(graph)
    scenario = hg.what_if(graph)
    assert scenario.scale(factor=0.5, op="learn").run().saved_ns < 0.05 * scenario.run().baseline_ns
    twice = scenario.scale(factor=0.5, name="fetch").run()
    of_learner = 1000 * (PACE_US / 2 + sum(WORK))
    assert twice.makespan_ns == pytest.approx(of_learner, rel=0.05), "then the learner sets the pace"
    assert not hg.replay(graph).max_error_ns


def test_short_waits_behind_long_work_show_the_pace_as_well() -> None:
    works = [20_000, 20_020, 39_000] * 5
    half = hg.what_if(learner(works, paced(works))).scale(factor=0.5, op="learn").run()
    assert half.saved_ns < 0.05 * half.baseline_ns, "each item would still be waited for"


def test_a_pause_of_the_step_itself_may_wait() -> None:
    events, at = [], 0
    for number, (work, wait) in enumerate(zip(WORK, paced(WORK), strict=True)):
        events += [step(number, at, wait + work), op("learn", at + wait, work)]
        at += wait + work
    graph = load(events)
    assert is_outside(graph)
    free = hg.what_if(graph).free_outside().run()
    assert free.makespan_ns == 1000 * (PACE_US + sum(WORK)), (
        "the step's work stays, and nothing tells of the first wait"
    )


@pytest.mark.parametrize(
    ("works", "waits"),
    [
        (WORK, [20_000] * 10),
        (WORK, [20_000, 21_000, 19_500, 20_300, 22_000, 18_000, 21_000, 20_500, 19_000, 20_000]),
        (WORK[:5], paced(WORK[:5])),
        ([20_000] * 10, [20_000] * 10),
    ],
    ids=["steady work", "work of its own", "too few", "nothing varies"],
)
def test_a_region_that_works_by_itself_does_not(works: list[int], waits: list[int]) -> None:
    graph = learner(works, waits)
    assert not is_outside(graph)
    total = hg.what_if(graph).run().baseline_ns
    half = hg.what_if(graph).scale(factor=0.5, op="learn").run()
    assert half.saved_ns == pytest.approx(sum(works) * 500, abs=0.01 * total)


def test_where_recorded_work_ends_with_each_wait_that_work_is_waited_for() -> None:
    ends = np.cumsum([wait + work for wait, work in zip(paced(WORK), WORK, strict=True)]) - np.array(WORK)
    beside = [kernel(COMPUTE, int(end) - 15_000, 14_990, 900 + i, stream=20) for i, end in enumerate(ends)]
    assert not is_outside(learner(WORK, paced(WORK), beside))


@given(st.lists(st.integers(10_000, 30_000), min_size=10, max_size=10), st.randoms(use_true_random=False))
def test_waits_that_do_not_depend_on_the_work_are_hardly_ever_taken_for_waits(works: list[int], random: object) -> None:
    waits = list(works)
    random.shuffle(waits)  # type: ignore[attr-defined]
    graph = learner(works, waits)
    assert not is_outside(graph) or np.corrcoef(waits[1:], works[:-1])[0, 1] < -0.8


def test_the_pace_of_others_is_doubted_and_the_time_is_that_of_the_thread() -> None:
    """No id and no name says that somebody else is waited for."""
    graph = learner(WORK, paced(WORK))
    loads = graph.edges.take(np.flatnonzero(graph.edges.kind == EdgeKind.OUTSIDE))
    assert (loads.provenance == Provenance.INFERRED).all()
    assert (loads.confidence < UNCERTAIN).all()
    half = hg.what_if(graph).scale(factor=0.5, op="learn").run()
    own = graph.time.max() - graph.origin_ns - 500 * sum(WORK)
    assert half.low < 1.05, "the others keep their pace"
    assert half.high > 0.99 * half.baseline_ns / own, "or the thread works by itself"


def test_work_and_waits_that_take_turns_in_a_step_are_no_pace() -> None:
    """A long pause behind a short operator and a short one behind a long operator make up for nothing."""
    events, at = [], 0
    for number in range(10):
        begin = at
        for name, pause, work in (("fill", 5_200 + 7 * (number % 3), 25_000), ("zero", 35, 3_000)):
            events.append(op(name, at + pause, work))
            at += pause + work
        events.append(step(number, begin, at - begin))
        at += 60
    assert not is_outside(load(events))


def test_the_first_item_of_a_pace_is_doubted_as_the_others_are() -> None:
    """It was begun before the recording, and comes when it was recorded to come, whatever the thread does before."""
    events, at = [op("prepare", 0, 3_000)], 3_010
    for number, (work, wait) in enumerate(zip(WORK, paced(WORK), strict=True)):
        events += [annotation("fetch", at, wait), op("learn", at + wait, work), step(number, at - 5, wait + work)]
        at += wait + work + 10
    graph = load(events)
    waits = np.flatnonzero(graph.edges.kind == EdgeKind.OUTSIDE)
    assert len(waits) == len(WORK)
    fast = hg.what_if(graph).infinite_host().run()
    first = graph.edges.target[waits].min()
    assert fast.time[first] == graph.time[first]
    free = hg.what_if(graph).free_outside().run()
    assert free.makespan_ns < 1.02 * 1000 * sum(WORK) + 3_000_000
    assert not hg.replay(graph).max_error_ns
