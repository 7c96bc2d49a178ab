from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.intervals import group_lengths
from htagraph.queries.enclosing import enclosing, launched, regions
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op

_INTERVALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 9)), max_size=12)


@given(_INTERVALS)
def test_a_moment_of_a_group_counts_once(intervals: list[tuple[int, int, int]]) -> None:
    group, start, took = np.array(intervals, np.int64).reshape(-1, 3).T
    expected = [
        len({moment for each, begin, last in intervals if each == number for moment in range(begin, begin + last)})
        for number in range(4)
    ]
    assert group_lengths(start, start + took, group, 4).tolist() == expected


def test_what_lies_around_a_launch_lies_around_its_work() -> None:
    graph = load([annotation("a", 0, 90), op("b", 5, 50), launch(10, 2, 1), kernel(COMPUTE, 60, 5, 1)])
    wanted = np.array([True, True, False, False])
    assert enclosing(graph, wanted, np.array([3, 2, 1, 0, -1])).tolist() == [1, 1, 1, 0, -1]
    assert [each.tolist() for each in regions(graph, wanted)] == [[0, 1], [-1, 0]]
    assert [each.tolist() for each in launched(graph)] == [[2], [3]]
