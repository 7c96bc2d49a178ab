"""Which end belongs to which begin."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.pftrace import pairing
from htagraph.trace.pftrace.pairing import NO_END

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
    end = pairing.paired(sequence, track, time, is_begin.astype(np.bool_)).end
    return {(int(time[row]), int(time[end[row]])) for row in np.flatnonzero(end != NO_END).tolist()}


def uncertain(rows: list[tuple[int, int, int, bool]]) -> set[int]:
    """Return the begins of rows to which another end may belong."""
    sequence, track, time, is_begin = np.array(rows, np.int64).reshape(-1, 4).T
    return set(time[pairing.paired(sequence, track, time, is_begin.astype(np.bool_)).is_uncertain].tolist())


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
    assert len(found) <= len(kept)
    expected = {(begin, end) for _, begin, end in kept}
    goes_back = any(one[2] > other[2] for one, other in itertools.pairwise(moments))
    assert not goes_back or found == expected or uncertain(moments) >= {begin for begin, _ in found - expected}


def test_slices_that_overlap_keep_their_ends_in_a_batch() -> None:
    rows = [(1, 1, 0, True), (1, 1, 5, True), (1, 1, 30, True), (1, 1, 7, False), (1, 1, 9, False), (1, 1, 31, False)]
    assert paired(rows) == {(0, 7), (5, 9), (30, 31)}


def test_sequences_are_apart() -> None:
    rows = [(1, 1, 0, True), (2, 1, 50, True), (2, 1, 60, False), (1, 1, 7, False)]
    assert paired(rows) == {(0, 7), (50, 60)}


def one_after_the_other(count: int) -> list[Slice]:
    return [(1, 10 * number, 10 * number + 7) for number in range(count)]


@given(st.integers(2, 20), st.integers(0, 19), st.integers(0, 1))
def test_a_lost_begin_or_end_moves_no_other_end_without_a_word(count: int, lost: int, is_begin: int) -> None:
    slices = one_after_the_other(count)
    moments = moments_of(slices, slices)
    del moments[lost % count + (0 if is_begin else count)]
    sound = {(begin, end) for _, begin, end in slices[: lost % count] + slices[lost % count + 1 :]}
    found = paired(moments)
    assert len(sound - found) <= 1
    assert uncertain(moments) >= {begin for begin, _ in found - sound}


def test_a_begin_and_another_slices_end_that_are_lost_shift_no_batch() -> None:
    slices = one_after_the_other(9)
    moments = moments_of(slices[:-1], slices[1:])
    right = {(begin, end) for _, begin, end in slices}
    assert len(paired(moments) & right) == 6
    assert uncertain(moments) >= {begin for begin, _ in paired(moments) - right}
