"""Begins and ends of slices → which end belongs to which begin.

An end names no begin. PyTorch writes many begins, and then their ends in the same order;
other writers write packets in the order of time, so that an end closes the slice of its track that began last.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, run_starts
from htagraph.core.compiled import for_reading, njit
from htagraph.core.statistics import MOST

__all__ = ["NO_END", "Pairing", "paired"]

NO_END: Final = -1
"""Stands for a begin without an end."""
_MOST_ROUNDS: Final = 4
"""How often batches are looked for among rows that are left. Chosen: one damage splits a batch in two, which a round
joins. Doubled, more slices of a file with many damages are paired."""


class Pairing(NamedTuple):
    """The end of each row, a begin or an end, rows in the order of the file."""

    end: Ints
    """Row of the end; `NO_END` for begins that lack one, and for ends."""
    is_uncertain: Mask
    """True for begins to which another end may belong, because begins or ends of their batch are lost."""


class _SliceMarks(NamedTuple):
    """Begins and ends of slices: sequence by sequence, and within a sequence in the order of the file."""

    sequence: Ints
    track: Ints
    time: Ints
    is_begin: Mask

    def take(self, rows: Array | slice) -> _SliceMarks:
        """Return some rows."""
        return _SliceMarks(
            self.sequence[rows],
            self.track[rows],
            self.time[rows],
            self.is_begin[rows],
        )


def paired(
    sequence: Ints,
    track: Ints,
    time: Ints,
    is_begin: Mask,
    *,
    is_damaged: bool = False,
) -> Pairing:
    """Return the end of each begin.

    Args:
        sequence: the sequence of packets that each begin or end is in, rows in the order of the file.
        track: its track.
        time: ns.
        is_begin: True for begins, False for ends.
        is_damaged: whether packets were lost, so that slices which overlap in part are a sign of a lost end.

    Example:
        >>> track = np.array([1, 1, 1, 1])
        >>> begins = np.array([True, True, False, False])
        >>> paired(track, track, np.array([0, 5, 9, 7]), begins).end.tolist()  # in the order of the begins
        [2, 3, -1, -1]
        >>> paired(track, track, np.array([0, 5, 7, 9]), begins).end.tolist()  # in the order of time
        [3, 2, -1, -1]
    """
    rows = _SliceMarks(sequence, track, time, is_begin)
    pairing = Pairing(
        np.full(len(track), NO_END, np.int64),
        np.zeros(len(track), np.bool_),
    )
    is_in_batch = np.zeros(len(track), np.bool_)
    left = np.argsort(sequence, kind="stable")
    for number in range(_MOST_ROUNDS):
        batches = _in_batches(rows.take(left), 0 if is_damaged else MOST)
        has_end = batches.end != NO_END
        pairing.end[left[has_end]] = left[batches.end[has_end]]
        was_left = has_end & (number > 0)
        pairing.is_uncertain[left] = batches.is_uncertain | was_left
        is_in_batch[left] |= batches.is_inside
        left = left[~batches.is_paired]
        if not has_end.any() or not len(left):
            break
    left = np.flatnonzero(~is_in_batch)
    nested = _nested(track[left], time[left], is_begin[left])
    has_end = nested != NO_END
    pairing.end[left[has_end]] = left[nested[has_end]]
    return pairing


class _Batches(NamedTuple):
    """Begins that are written batch by batch: by row as `Pairing`, and which rows the batches hold."""

    end: Ints
    is_uncertain: Mask
    is_inside: Mask
    """True for rows of a batch, also for rows that no other row of the batch fits."""
    is_paired: Mask
    """True for begins with an end, and for these ends."""


def _in_batches(rows: _SliceMarks, may_overlap: float) -> _Batches:
    """Return the ends of begins that are written batch by batch; a share of a batch's slices may overlap in part."""
    time = rows.time
    count = len(time)
    batches = _Batches(
        end=np.full(count, NO_END, np.int64),
        is_uncertain=np.zeros(count, np.bool_),
        is_inside=np.zeros(count, np.bool_),
        is_paired=np.zeros(count, np.bool_),
    )
    goes_back = np.zeros(count + 1, np.int64)
    goes_back[2:] = np.cumsum((time[1:] < time[:-1]) & (rows.sequence[1:] == rows.sequence[:-1]))
    for first, middle, stop in _pairs_of_runs(rows):
        if goes_back[stop] == goes_back[first + 1]:
            continue  # in the order of time
        begins = rows.take(slice(first, middle))
        ends = rows.take(slice(middle, stop))
        partner, doubtful = _in_order(begins, ends, may_overlap)
        begin = first + np.flatnonzero(partner != NO_END)
        if not len(begin):
            continue
        end = middle + partner[begin - first]
        batches.end[begin] = end
        batches.is_uncertain[first:middle] = doubtful
        batches.is_inside[first:stop] = True
        batches.is_paired[begin] = True
        batches.is_paired[end] = True
    return batches


def _pairs_of_runs(rows: _SliceMarks) -> list[tuple[int, int, int]]:
    """Return (first begin, first end, row behind the last end) of begins that ends of the same sequence follow."""
    runs = np.append(run_starts(rows.sequence, rows.is_begin), len(rows.track))
    first = runs[:-2]
    middle = runs[1:-1]
    if not len(first):
        return []
    is_begin = rows.is_begin
    sequence = rows.sequence
    fits = is_begin[first] & ~is_begin[middle] & (sequence[first] == sequence[middle])
    return list(
        zip(
            first[fits].tolist(),
            middle[fits].tolist(),
            runs[2:][fits].tolist(),
            strict=True,
        )
    )


def _in_order(begins: _SliceMarks, ends: _SliceMarks, may_overlap: float) -> tuple[Ints, Mask]:
    """Return (the number of the end of each begin of a batch, whether another end fits as well)."""
    begin_count = len(begins.track)
    end_count = len(ends.track)
    if begin_count == end_count and _fit_one_by_one(begins, ends, may_overlap):
        return np.arange(end_count), np.zeros(begin_count, np.bool_)
    forward = _aligned(
        begins.track,
        begins.time,
        ends.track,
        ends.time,
        0,
    )
    backward = _aligned(
        begins.track[::-1],
        begins.time[::-1],
        ends.track[::-1],
        ends.time[::-1],
        -1,
    )[::-1]
    backward = np.where(backward == NO_END, NO_END, end_count - 1 - backward)
    is_doubtful = forward != backward
    longest = max(forward, backward, key=lambda partner: np.count_nonzero(partner != NO_END))
    return longest, is_doubtful & (longest != NO_END)


def _fit_one_by_one(begins: _SliceMarks, ends: _SliceMarks, may_overlap: float) -> bool:
    """Return whether each begin fits the end of its number, and at most a share of the slices overlap in part."""
    if (begins.track != ends.track).any() or (begins.time > ends.time).any():
        return False
    is_same_track = begins.track[1:] == begins.track[:-1]
    is_open = (begins.time[:-1] < begins.time[1:]) & (begins.time[1:] < ends.time[:-1])
    is_partial = is_same_track & is_open & (ends.time[:-1] < ends.time[1:])
    partial = int(np.count_nonzero(is_partial))
    return partial <= may_overlap * len(is_partial)


@njit(cache=True, nogil=True)
def _aligned(
    begin_track: Array,
    begin_time: Array,
    end_track: Array,
    end_time: Array,
    may_be_more: int,
) -> Array:
    """Return the number of each begin's end, in the order of the begins; `NO_END` where none fits.

    Where a begin and an end do not fit, one is passed over: the end if more ends are left than begins and
    `may_be_more`, else the begin.
    """
    partner = np.full(len(begin_track), NO_END, np.int64)
    begin = end = 0
    last = -1
    while begin < len(begin_track) and end < len(end_track):
        more = (len(end_track) - end) - (len(begin_track) - begin)
        # a slice may take no time, but where a begin is lost, the next one often has the time of the end before it
        fits = begin_track[begin] == end_track[end] and begin_time[begin] + (more > 0) <= end_time[end]
        if fits and last >= 0 and begin_track[last] == begin_track[begin]:
            fits = _lie_apart_or_nested(
                begin_time[last],
                end_time[partner[last]],
                begin_time[begin],
                end_time[end],
            )
        if fits:
            partner[begin] = end
            last = begin
            begin += 1
            end += 1
        elif more > may_be_more:
            end += 1
        else:
            begin += 1
    return partner


@njit(cache=True, nogil=True)
def _lie_apart_or_nested(begin: int, end: int, other_begin: int, other_end: int) -> bool:
    if begin <= other_begin:
        return other_begin >= end or other_end <= end
    return begin >= other_end or end <= other_end


def _nested(track: Ints, time: Ints, is_begin: Mask) -> Ints:
    """Return the end of each begin, where each end closes the slice of its track that began last."""
    order = np.lexsort((time, track))
    partner = _match(
        for_reading(track[order], np.int64),
        for_reading(is_begin[order], np.bool_),
    )
    end = np.full(len(track), NO_END, np.int64)
    has_end = partner != NO_END
    end[order[has_end]] = order[partner[has_end]]
    return end


@njit(cache=True, nogil=True)
def _match(track: Array, is_begin: Array) -> Array:
    """Return the place of the end of each begin; rows of one track follow each other in the order of time."""
    end = np.full(len(track), NO_END, np.int64)
    is_open = np.empty(len(track), np.int64)
    count = 0
    for place in range(len(track)):
        if place and track[place] != track[place - 1]:
            count = 0
        if is_begin[place]:
            is_open[count] = place
            count += 1
        elif count:
            count -= 1
            end[is_open[count]] = place
    return end
