"""Pictures of intervals against counting moment by moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.plot.raster import columns_of, covered, highest_of_steps, longest, mean_of_steps, running

INTERVALS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12), st.integers(0, 2)), max_size=12
)
EDGES = np.arange(0.0, 44.0, 4.0)


def arrays(intervals: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    row, start, length, code = np.array(intervals, np.int64).reshape(-1, 4).T
    return row, start.astype(float), (start + length).astype(float), code


@given(INTERVALS)
def test_covered_time_is_what_a_count_of_each_moment_gives(intervals: list[tuple[int, int, int, int]]) -> None:
    row, start, end, _ = arrays(intervals)
    expected = np.zeros((3, len(EDGES) - 1))
    for each, begin, length, _ in intervals:
        for moment in range(begin, begin + length):
            if moment < EDGES[-1]:
                expected[each, moment // 4] += 1
    np.testing.assert_allclose(covered(row, start, end, EDGES, 3), expected, atol=1e-9)


@given(INTERVALS)
def test_the_code_of_a_cell_covers_most_of_it(intervals: list[tuple[int, int, int, int]]) -> None:
    row, start, end, code = arrays(intervals)
    found = longest(row, start, end, code, EDGES)
    for at in range(len(found)):
        for column in range(len(EDGES) - 1):
            time = [
                sum(
                    max(0, min(begin + length, EDGES[column + 1]) - max(begin, EDGES[column]))
                    for each, begin, length, what in intervals
                    if each == at and what == kind
                )
                for kind in range(3)
            ]
            best = found[at, column]
            assert np.isnan(best) if not max(time) else time[int(best)] == max(time)


def test_what_runs_in_the_middle_of_a_cell_is_found() -> None:
    row, start, end = np.array([0, 0, 1]), np.array([0.0, 4.0, 5.0]), np.array([3.0, 8.0, 5.5])
    assert running(row, start, end, np.array([0.0, 4.0, 8.0]), 2).tolist() == [[0, 1], [-1, -1]]


@given(st.lists(st.tuples(st.integers(0, 39), st.integers(0, 5)), min_size=1, max_size=8))
def test_a_mean_over_a_cell_is_that_of_its_moments(steps: list[tuple[int, int]]) -> None:
    steps = sorted(steps, key=lambda step: step[0])
    level = np.array([next((v for t, v in reversed(steps) if t <= moment), 0) for moment in range(40)], float)
    time, value = (np.array(each, float) for each in zip(*steps, strict=True))
    np.testing.assert_allclose(mean_of_steps(time, value, EDGES), level.reshape(-1, 4).mean(axis=1), atol=1e-9)
    order = np.unique(time[::-1], return_index=True)[1]  # of changes at one moment, the last holds
    last = (time[::-1][order], value[::-1][order])
    np.testing.assert_allclose(highest_of_steps(*last, EDGES), level.reshape(-1, 4).max(axis=1), atol=1e-9)


def test_pictures_of_many_rows_have_fewer_columns() -> None:
    assert len(columns_of(0, 1, 4).edges) == 801
    assert len(columns_of(0, 1, 4096).edges) == 101
    assert columns_of(5, 5, 1).edges[-1] > 5
