"""Own time of activities as a difference compares it, on a job whose answer is obvious."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.analyses.differences.alignment import align
from htagraph.analyses.differences.compared_parts import parts_of
from htagraph.analyses.differences.own_work import WAIT, OwnWork, awaited, polled
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime, step


def test_own_time_is_that_of_no_other_operator() -> None:
    graph = load([op("outer", 0, 100), op("inner", 20, 30)])
    own = OwnWork.of(parts_of(graph, graph, None, None, None)[0], align(graph, graph).path[0])
    names = [graph.names[graph.activities.name[i]] for i in own.whose.tolist()]
    total = dict.fromkeys(names, 0.0)
    for name, time in zip(names, own.shown.tolist(), strict=True):
        total[name] += time / 1000
    assert total == {"outer": 70, "inner": 30}
    assert not (own.part == WAIT).any()


GLOO = "gloo:all_reduce"


def job(*ends: int, length: int = 90) -> list[Json]:
    """Return operators of 100 µs, and beside each an all-reduce that ends so long after the operator's begin."""
    events = []
    for i, end in enumerate(ends):
        at = 1000 * i
        events += [op("caller", at, 100), op(GLOO, at + end - length, length, tid=77)]
    return events


def waits(graph: DependencyGraph) -> list[bool]:
    """Return for each call, taken as one piece of own time, whether it waits for the all-reduce beside it."""
    acts = graph.activities
    rows = graph.select(name="caller").activities
    found = awaited(graph, rows, acts.start[rows], acts.start[rows] + acts.duration[rows], np.zeros(len(rows), int))
    assert {graph.names[acts.name[i]] for i in found[found >= 0].tolist()} <= {GLOO}
    return (found >= 0).tolist()


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([99, 95, 98], [True, True, True]),  # the call goes on at once when communication ends
        ([99, 50, 20], [False, False, False]),  # it ends at any moment: once near the end is chance
        ([99, 95, 50], [True, True, False]),  # sometimes it is over in time
        ([120, 130, 110], [False, False, False]),  # communication goes on after the call
    ],
)  # fmt: skip
def test_a_call_waits_if_most_of_its_time_ends_with_communication(ends: list[int], expected: list[bool]) -> None:
    assert waits(load(job(*ends))) == expected


def test_communication_of_another_rank_or_none_is_not_awaited() -> None:
    assert waits(load({0: [op("caller", 0, 100)], 1: [op(GLOO, 9, 90)]})) == [False]
    assert waits(load([op("caller", 0, 100)])) == [False]


def polling(kernel_us: int, every: int = 10) -> list[Json]:
    """Return a step that launches a kernel, and asks for an event until it is done."""
    done = 10 + kernel_us
    asks = [runtime("cudaEventQuery", at, 1) for at in range(10, done + every, every)]
    return [step(1, 0, done + every + 50), launch(0, 2, 1), kernel(COMPUTE, 10, kernel_us, 1), *asks]


def awaits(graph: DependencyGraph) -> bool:
    """Return whether host code from 10 to 20 µs waits for the kernel."""
    whose = graph.select(kind="step").activities
    begin = graph.origin_ns + np.array([10_000])
    (found,) = polled(graph, whose, begin, begin + 10_000).tolist()
    assert found == -1 or graph.activities.on_device[found]
    return bool(found >= 0)


def test_a_loop_of_queries_that_ends_with_device_work_waits_for_it() -> None:
    assert awaits(load(polling(500)))
    assert not awaits(load(polling(5)))  # asked once, by the way
    assert not awaits(load([*polling(500), kernel(COMPUTE, 510, 300, 1)][:2]))  # nobody asks
    assert not awaits(load([event for event in polling(500) if event["name"] != COMPUTE]))  # no device work ends


def test_what_is_asked_for_changed_and_not_the_number_of_questions() -> None:
    difference = hg.diff(load(polling(800)), load(polling(400)))
    first = difference.causes().iloc[0]
    assert first["kind"] == "computation"
    assert first["effect_us"] == pytest.approx(-400, abs=5)
    assert "waiting for a device in a loop of queries" in difference.sentences()[2]
