from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.graph.construction.nesting import nest
from tests import oracles
from tests.strategies import load, op

SNAP = 2


def ordered(made: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(((start, start + took) for start, took in made), key=lambda pair: (pair[0], -pair[1]))


def parents(intervals: list[tuple[int, int]], snap: int = 0) -> list[int]:
    start, end = np.array(intervals, np.int64).reshape(-1, 2).T
    parent, _, _ = nest(np.zeros(len(intervals), np.int32), start, end, np.ones(len(intervals), np.bool_), snap)
    return [int(each) for each in parent]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 10)), max_size=9).map(ordered))
@settings(max_examples=200)
def test_the_parent_is_what_the_slow_search_finds(intervals: list[tuple[int, int]]) -> None:
    assert parents(intervals) == oracles.parents(intervals)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), max_size=9).map(sorted))
@settings(max_examples=100)
def test_each_boundary_appears_once_in_the_order_of_time(made: list[tuple[int, int, int]]) -> None:
    rows = sorted(((lane, start, start + took) for lane, start, took in made), key=lambda r: (r[0], r[1], -r[2]))
    lane, start, end = np.array(rows, np.int64).reshape(-1, 3).T
    _, boundaries, innermost = nest(lane.astype(np.int32), start, end, np.ones(len(rows), np.bool_), 0)
    assert sorted(boundaries.tolist()) == list(range(2 * len(rows)))
    moments = [(int(lane[v // 2]), int((start, end)[v % 2][v // 2])) for v in boundaries]
    assert moments == sorted(moments)
    at_work: list[int] = []
    for vertex, inner in zip(boundaries.tolist(), innermost.tolist(), strict=True):
        at_work = [*at_work, vertex // 2] if vertex % 2 == 0 else [each for each in at_work if each != vertex // 2]
        assert (inner in at_work) if at_work else inner == -1


@pytest.mark.parametrize(("beyond", "parent"), [(0, 0), (1, 0), (2, 0), (3, -1)])
def test_a_child_may_end_up_to_two_ns_after_its_parent(beyond: int, parent: int) -> None:
    assert parents([(0, 100), (50, 100 + beyond)], SNAP) == [-1, parent]


def test_lanes_do_not_enclose_one_another() -> None:
    parent, _, _ = nest(np.array([0, 1], np.int32), np.array([0, 2]), np.array([9, 4]), np.ones(2, np.bool_), 0)
    assert parent.tolist() == [-1, -1]


def test_of_equal_intervals_the_first_in_the_file_is_the_outer_one() -> None:
    graph = load([op("outer", 0, 5), op("inner", 0, 5), op("innermost", 0, 5)])
    assert graph.activities.parent.tolist() == [-1, 0, 1]
