"""Slices of a lane on tracks and in rows, against looking at each pair of slices."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.lanes import nesting_tracks, rows_below

SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8)), max_size=12)


def columns(slices: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array(slices, np.int64).reshape(-1, 3).T


@given(SLICES)
def test_slices_of_a_track_are_disjoint_or_nested(slices: list[tuple[int, int, int]]) -> None:
    lane, start, duration = columns(slices)
    level, end = nesting_tracks(lane, start, duration), start + duration
    for one in range(len(slices)):
        for other in range(len(slices)):
            if (lane[one], level[one]) == (lane[other], level[other]) and start[one] < start[other] < end[one]:
                assert end[other] <= end[one]
    assert set(level.tolist()) == set(range(int(level.max(initial=-1)) + 1))


@given(SLICES)
def test_what_nests_needs_one_track(slices: list[tuple[int, int, int]]) -> None:
    _, start, duration = columns(slices)
    assert not nesting_tracks(np.arange(len(slices)), start, duration).any()


@given(SLICES)
def test_slices_of_a_row_follow_each_other(slices: list[tuple[int, int, int]]) -> None:
    lane, start, duration = columns(slices)
    row = rows_below(lane, start, duration)
    for place in {*zip(lane.tolist(), row.tolist(), strict=True)}:
        here = np.flatnonzero((lane == place[0]) & (row == place[1]))
        here = here[np.lexsort((duration[here], start[here]))]
        assert (start[here][1:] >= (start + duration)[here][:-1]).all()
