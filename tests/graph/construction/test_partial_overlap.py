"""Nesting of intervals that overlap in part: the slow search, and the fast path where nothing overlaps in part."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.graph.construction import partial_overlap
from htagraph.graph.construction.nesting import nest
from htagraph.graph.construction.partial_overlap import nest_crossing
from tests import oracles

Row = tuple[int, int, int]
"""(lane, start, end)."""


def columns(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lane, start, end = np.array(rows, np.int64).reshape(-1, 3).T
    return lane.astype(np.int32), start, end


def ordered(made: list[Row]) -> list[Row]:
    return sorted(
        ((lane, start, start + took) for lane, start, took in made), key=lambda row: (row[0], row[1], -row[2])
    )


made_rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 9)), max_size=9).map(ordered)


@pytest.mark.slow
@given(made_rows)
@settings(max_examples=150)
def test_parents_are_what_the_slow_search_finds_lane_by_lane(rows: list[Row]) -> None:
    every = np.ones(len(rows), np.bool_)
    parent, _, _ = nest_crossing(*columns(rows), every, 0, every)
    expected: list[int] = []
    for lane in (0, 1):
        first = len(expected)
        found = oracles.parents([(start, end) for own, start, end in rows if own == lane])
        expected += [each + first if each >= 0 else -1 for each in found]
    assert parent.tolist() == expected


@pytest.mark.slow
@given(made_rows, st.lists(st.booleans(), min_size=9, max_size=9))
@settings(max_examples=150)
def test_the_fast_path_gives_the_same(rows: list[Row], work: list[bool]) -> None:
    is_work = np.array(work[: len(rows)], np.bool_)
    slow = nest_crossing(*columns(rows), is_work, 0, np.ones(len(rows), np.bool_))
    for one, other in zip(slow, nest(*columns(rows), is_work, 0), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("crossing", [False, True])
def test_only_a_lane_in_which_something_overlaps_in_part_is_walked_on_heaps(
    monkeypatch: pytest.MonkeyPatch, *, crossing: bool
) -> None:
    """The walk is called as it is written, uncompiled."""
    lanes: list[int] = []
    on_stacks = partial_overlap._nest_on_stacks.py_func  # type: ignore[attr-defined]
    monkeypatch.setattr(partial_overlap, "_nest_on_stacks", on_stacks)
    monkeypatch.setattr(partial_overlap, "_nest_on_heaps", lambda first, *_: lanes.append(first))
    rows = ordered([(0, 0, 10), (0, 2, 3), (0, 2, 0), (1, 0, 4), (1, 1, 9 if crossing else 2), (2, 0, 1)])
    every = np.ones(len(rows), np.bool_)
    nest_crossing.py_func(*columns(rows), every, 0, every)  # type: ignore[attr-defined]
    assert lanes == ([3] if crossing else [])


def test_of_two_that_overlap_in_part_neither_is_the_parent() -> None:
    every = np.ones(3, np.bool_)
    parent, boundaries, at_work = nest_crossing(*columns([(0, 0, 10), (0, 5, 15), (0, 6, 9)]), every, 0, every)
    assert parent.tolist() == [-1, -1, 1], "of those that contain it, the one that began last"
    assert boundaries.tolist() == [0, 2, 4, 5, 1, 3]
    assert at_work.tolist() == [0, 0, 2, 0, 1, -1], "the open one that ends first"


@given(made_rows, st.lists(st.booleans(), min_size=9, max_size=9))
@settings(max_examples=100)
def test_what_encloses_nothing_is_left_out_of_the_search_for_parents(rows: list[Row], may: list[bool]) -> None:
    rows = [row for row in rows if not row[0]]
    encloses = np.array(may[: len(rows)], np.bool_)
    parent, boundaries, _ = nest(*columns(rows), np.ones(len(rows), np.bool_), 0, encloses)
    every = oracles.parents([(start, end) for _, start, end in rows])
    for row, (_, start, end) in enumerate(rows):
        among = [(*each[1:], at) for at, each in enumerate(rows[:row]) if may[at]]
        found = oracles.parents([*(each[:2] for each in among), (start, end)])[-1]
        assert parent[row] == (among[found][2] if found >= 0 else -1)
        assert every[row] == parent[row] or not may[every[row]]
    assert sorted(boundaries.tolist()) == list(range(2 * len(rows)))


def _plain(function: Any) -> Any:
    """Return what was compiled, as Python runs it."""
    return function.py_func


def test_intervals_that_all_cross_are_compared_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Mock(wraps=_plain(partial_overlap._before))
    for name in ("_nest_on_stacks", "_nest_on_heaps", "_with", "_without_first", "_close", "_place"):
        monkeypatch.setattr(partial_overlap, name, _plain(getattr(partial_overlap, name)))
    monkeypatch.setattr(partial_overlap, "_before", compared)
    count = 256
    rows = [(0, i, count + i) for i in range(count)]
    every = np.ones(count, np.bool_)
    _plain(partial_overlap.nest_crossing)(*columns(rows), every, 0, every)
    assert compared.call_count <= 6 * count * 8, "a few times log2(count); one by one it would be count * count"
