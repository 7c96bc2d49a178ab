from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.intervals import Intervals, clip, difference, group_lengths, intersection, length, union

Pairs: TypeAlias = list[tuple[int, int]]

pairs = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=8)


def normal(made: Pairs) -> Intervals:
    start, end = np.array(made, np.int64).reshape(-1, 2).T
    return union(start, end)


def points(made: Intervals) -> set[int]:
    """Return the unit cells that a set covers."""
    return {at for start, end in zip(*(side.tolist() for side in made), strict=True) for at in range(start, end)}


def cells(made: Pairs) -> set[int]:
    return {at for start, end in made for at in range(start, end)}


def assert_normal(made: Intervals) -> None:
    start, end = made
    assert (end > start).all()
    assert (start[1:] > end[:-1]).all()


@given(pairs)
@settings(max_examples=60)
def test_a_union_covers_what_any_interval_covers(made: Pairs) -> None:
    joined = normal(made)
    assert_normal(joined)
    assert points(joined) == cells(made)
    assert length(joined) == len(cells(made))


@given(pairs, pairs)
@settings(max_examples=60)
def test_an_intersection_covers_what_both_cover(one: Pairs, other: Pairs) -> None:
    both = intersection(normal(one), normal(other))
    assert_normal(both)
    assert points(both) == cells(one) & cells(other)


@given(pairs, pairs)
@settings(max_examples=60)
def test_a_difference_covers_what_only_the_first_covers(one: Pairs, other: Pairs) -> None:
    rest = difference(normal(one), normal(other))
    assert_normal(rest)
    assert points(rest) == cells(one) - cells(other)


@given(pairs, st.integers(-20, 20), st.integers(-20, 20))
@settings(max_examples=60)
def test_a_clipped_set_lies_in_the_window(made: Pairs, low: int, high: int) -> None:
    assert points(clip(normal(made), low, high)) == cells(made) & set(range(low, high))


@pytest.mark.parametrize("made", [[], [(3, 3)], [(5, 2)]], ids=["nothing", "an empty interval", "a negative one"])
def test_what_covers_nothing_has_length_zero(made: Pairs) -> None:
    assert length(normal(made)) == 0


def test_touching_intervals_are_joined() -> None:
    assert [side.tolist() for side in normal([(0, 3), (3, 5)])] == [[0], [5]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 9)), max_size=12))
def test_a_moment_of_a_group_counts_once(intervals: list[tuple[int, int, int]]) -> None:
    group, start, took = np.array(intervals, np.int64).reshape(-1, 3).T
    expected = [
        len({moment for each, begin, last in intervals if each == number for moment in range(begin, begin + last)})
        for number in range(4)
    ]
    assert group_lengths(start, start + took, group, 4).tolist() == expected
