"""Paths beside the critical one, on a job small enough to see them all; `test_paths` has the properties."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

from htagraph.analyses.critical_path import critical_path
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.near_critical import ways_beside
from tests.strategies import Frames, frames


def _job() -> DependencyGraph:
    """Activity 0 forks into 1 (10 µs), 2 (7 µs) and 3 (4 µs); 4 waits for all three, 5 for 0 alone."""
    activities = pd.DataFrame({"duration_ns": [1_000, 10_000, 7_000, 4_000, 2_000, 6_000]})
    pairs = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (0, 5)]
    return DependencyGraph.from_frames(activities, pd.DataFrame(pairs, columns=["source", "target"]))


def test_of_parallel_branches_the_longest_is_next_and_its_slack_is_what_it_is_shorter() -> None:
    path = critical_path(_job())
    ways = ways_beside(path, 10)
    assert [way.slack for way in ways] == [3_000, 6_000, 6_000]
    back = [way.returns >> 1 if way.returns >= 0 else -1 for way in ways]
    assert back[0] == 4
    assert sorted(back[1:]) == [-1, 4]  # activity 5 ends 6 µs before the job does, 3 is 6 µs shorter than 1
    own = [{int(v) >> 1 for v in way.vertices} - {0} for way in ways]
    assert own[0] == {2}
    assert {frozenset(one) for one in own[1:]} == {frozenset({3}), frozenset({5})}


@pytest.mark.parametrize(("least", "count"), [(0, 3), (4_000, 3), (4_001, 2), (6_001, 1), (7_001, 0)])
def test_what_has_less_work_than_asked_for_does_not_count(least: int, count: int) -> None:
    assert len(ways_beside(critical_path(_job()), 10, least)) == count


@given(frames(max_size=9))
@settings(max_examples=60)
def test_fewer_are_the_first_of_more(made: Frames) -> None:
    path = critical_path(made.graph)
    every = ways_beside(path, 1000)
    for count in range(len(every) + 1):
        assert [way.vertices.tolist() for way in ways_beside(path, count)] == [
            way.vertices.tolist() for way in every[:count]
        ]
