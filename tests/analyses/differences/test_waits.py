"""Own time that waits for communication, on jobs whose answer is obvious."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph import DependencyGraph
from htagraph.analyses.differences.waits import awaited
from tests.strategies import Json, load, op

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


def test_communication_of_another_rank_is_not_awaited() -> None:
    graph = load({0: [op("caller", 0, 100)], 1: [op(GLOO, 9, 90)]})
    assert waits(graph) == [False]


def test_a_job_without_communication_on_hosts_waits_for_none() -> None:
    assert waits(load([op("caller", 0, 100)])) == [False]
