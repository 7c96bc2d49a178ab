"""Which end belongs to which begin."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.pftrace.pairing import NO_END, ends_of

Slice = tuple[int, int, int]


@st.composite
def nested(draw: st.DrawFn) -> list[Slice]:
    """Return slices (track, begin, end) that nest on their tracks; times are different."""
    slices, time = list[Slice](), 0
    for track in range(draw(st.integers(1, 3))):
        still_open = list[int]()
        for opens in draw(st.lists(st.booleans(), max_size=12)):
            time += draw(st.integers(1, 5))
            if opens:
                still_open.append(time)
            elif still_open:
                slices.append((track, still_open.pop(), time))
        for begin in reversed(still_open):
            time += 1
            slices.append((track, begin, time))
    return sorted(slices, key=lambda each: each[1])


def paired(rows: list[tuple[int, int, int, bool]]) -> set[tuple[int, int]]:
    """Return (begin, end) of rows (sequence, track, time, is a begin)."""
    sequence, track, time, is_begin = np.array(rows, np.int64).reshape(-1, 4).T
    end = ends_of(sequence, track, time, is_begin.astype(np.bool_))
    return {(int(time[row]), int(time[end[row]])) for row in np.flatnonzero(end != NO_END).tolist()}


def moments_of(begun: list[Slice], ended: list[Slice]) -> list[tuple[int, int, int, bool]]:
    """Return the begins of slices, and then the ends of slices."""
    return [
        *((1, track, begin, True) for track, begin, _ in begun),
        *((1, track, end, False) for track, _, end in ended),
    ]


@given(nested())
def test_slices_in_the_order_of_time_and_in_batches_are_the_same(slices: list[Slice]) -> None:
    moments = [(1, track, begin, True) for track, begin, _ in slices] + [
        (1, track, end, False) for track, _, end in slices
    ]
    expected = {(begin, end) for _, begin, end in slices}
    assert paired(sorted(moments, key=lambda row: row[2])) == expected
    assert paired(moments) == expected


@given(nested(), st.integers(0, 10))
def test_a_batch_that_ends_early_loses_only_its_last_slices(slices: list[Slice], lost: int) -> None:
    kept = slices[: max(0, len(slices) - lost)]
    moments = [(1, track, begin, True) for track, begin, _ in slices] + [
        (1, track, end, False) for track, _, end in kept
    ]
    found = paired(moments)
    assert len(found) == len(kept)
    goes_back = any(one[2] > other[2] for one, other in itertools.pairwise(moments))
    assert not goes_back or found == {(begin, end) for _, begin, end in kept}


def test_slices_that_overlap_keep_their_ends_in_a_batch() -> None:
    rows = [(1, 1, 0, True), (1, 1, 5, True), (1, 1, 30, True), (1, 1, 7, False), (1, 1, 9, False), (1, 1, 31, False)]
    assert paired(rows) == {(0, 7), (5, 9), (30, 31)}


def test_sequences_are_apart() -> None:
    rows = [(1, 1, 0, True), (2, 1, 50, True), (2, 1, 60, False), (1, 1, 7, False)]
    assert paired(rows) == {(0, 7), (50, 60)}
