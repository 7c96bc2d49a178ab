"""When the events of a file begin, counted by the second: against all starts at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.reading.extent import Extents, merged, overlaps

SECOND = 10**9
blocks = st.lists(st.lists(st.integers(-3 * SECOND, 40_000 * SECOND), max_size=6), max_size=4)
pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


@given(blocks)
def test_blocks_say_what_all_starts_say(starts: list[list[int]]) -> None:
    extents = Extents()
    for block in starts:
        extents.see(np.array(block, np.int64), np.array(block, np.int64) % 7)
    every = sorted(start for block in starts for start in block)
    assert extents.count == extents.result().events == len(every)
    if every:
        low, high = (every[(len(every) - 1) * part // 4] // SECOND for part in (1, 3))
        limit = (low - 4 * (high - low) - 3600) * SECOND
        valid = [start for start in every if start >= limit]
        assert extents.result()[:4] == (limit, len(every) - len(valid), valid[0], every[-1])
        assert extents.result().longest == max(start % 7 for start in every)


@pytest.mark.parametrize("stray", [0, 6395 * SECOND, 12_000 * SECOND])
def test_what_starts_hours_before_the_rest_is_a_clock_error(stray: int) -> None:
    extents = Extents()
    extents.see(np.array([stray, *range(9_990 * SECOND, 10_000 * SECOND, SECOND)]), np.zeros(11, np.int64))
    assert extents.result().early == (stray < (9_992 - 4 * 5 - 3600) * SECOND)
    assert extents.result().first == (stray if stray == 6395 * SECOND else 9_990 * SECOND)


def test_no_events_have_no_extent() -> None:
    assert Extents().result()[1:] == (0, 0, 0, 0, 0)


@given(pairs)
def test_merged_windows_cover_the_same_and_are_apart(windows: list[tuple[int, int]]) -> None:
    given_windows = np.array([(start, start + length) for start, length in windows], np.int64).reshape(-1, 2)
    found = merged(given_windows)

    def covered(some: np.ndarray) -> set[float]:
        return {half / 2 for start, end in some.tolist() for half in range(2 * start, 2 * end + 1)}

    assert covered(found) == covered(given_windows)
    assert (found[1:, 0] > found[:-1, 1]).all()


@given(pairs, pairs)
def test_an_event_overlaps_a_window_if_they_share_a_moment(
    windows: list[tuple[int, int]], events: list[tuple[int, int]]
) -> None:
    spans = merged(np.array([(start, start + length) for start, length in windows], np.int64).reshape(-1, 2))
    start, duration = np.array(events, np.int64).reshape(-1, 2).T
    expected = [any(a <= b + length and b <= end for a, end in spans.tolist()) for b, length in events]
    assert overlaps(start, duration, spans).tolist() == expected
