"""Whether slices of one track nest, and arrows meet the slice that Perfetto takes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.export.tracks import Slices, nesting_tracks

SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 10)), max_size=20)


@given(SLICES)
def test_slices_of_a_track_are_disjoint_or_nested(rows: list[tuple[int, int, int]]) -> None:
    lane, start, duration = np.array(rows, np.int64).reshape(-1, 3).T
    level, end = nesting_tracks(lane, start, duration), start + duration
    for one in range(len(rows)):
        for other in range(len(rows)):
            if (lane[one], level[one]) == (lane[other], level[other]) and start[one] < start[other] < end[one]:
                assert end[other] <= end[one]


@given(SLICES)
def test_what_nests_needs_one_track(rows: list[tuple[int, int, int]]) -> None:
    lane = np.arange(len(rows))
    start, duration = (np.array([row[column] for row in rows], np.int64) for column in (1, 2))
    assert not nesting_tracks(lane, start, duration).any()


def test_an_arrow_meets_the_innermost_slice_around_its_end() -> None:
    lane, start, duration = np.array([0, 0, 1]), np.array([0, 2, 0]), np.array([10, 4, 5])
    slices = Slices(lane, start, duration, nesting_tracks(lane, start, duration))
    assert slices.met(np.array([0, 0, 0, 1, 1]), np.array([2, 4, 8, 5, 6])).tolist() == [1, 1, 0, 2, -1]
