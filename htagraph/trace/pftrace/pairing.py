"""Begins and ends of slices → which end belongs to which begin.

An end names no begin. PyTorch writes many begins, and then their ends in the same order;
other writers write packets in the order of time, so that an end closes the slice of its track that began last.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, run_starts
from htagraph.core.compiled import for_reading, njit

__all__ = ["NO_END", "ends_of"]

NO_END: Final = -1
"""Stands for a begin without an end."""


def ends_of(
    sequence: Ints,
    track: Ints,
    time: Ints,
    is_begin: Mask,
) -> Ints:
    """Return the row of each row's end; `NO_END` for begins that lack one, and for ends.

    Args:
        sequence: the sequence of packets that each begin or end is in, rows in the order of the file.
        track: its track.
        time: ns.
        is_begin: True for begins, False for ends.

    Example:
        >>> track = np.array([1, 1, 1, 1])
        >>> begins = np.array([True, True, False, False])
        >>> ends_of(track, track, np.array([0, 5, 9, 7]), begins).tolist()  # in the order of the begins
        [2, 3, -1, -1]
        >>> ends_of(track, track, np.array([0, 5, 7, 9]), begins).tolist()  # in the order of time
        [3, 2, -1, -1]
    """
    order = np.argsort(sequence, kind="stable")
    end = np.full(len(track), NO_END, np.int64)
    batched, is_left = _in_batches(
        sequence[order],
        track[order],
        time[order],
        is_begin[order],
    )
    has_end = batched != NO_END
    end[order[has_end]] = order[batched[has_end]]
    left = np.sort(order[is_left])
    nested = _nested(track[left], time[left], is_begin[left])
    has_end = nested != NO_END
    end[left[has_end]] = left[nested[has_end]]
    return end


def _in_batches(
    sequence: Ints,
    track: Ints,
    time: Ints,
    is_begin: Mask,
) -> tuple[Ints, Mask]:
    """Return (the ends of begins that are written batch by batch, which rows belong to no batch)."""
    end = np.full(len(track), NO_END, np.int64)
    is_left = np.ones(len(track), np.bool_)
    runs = np.append(run_starts(sequence, is_begin), len(track))
    goes_back = np.zeros(len(track) + 1, np.int64)
    goes_back[2:] = np.cumsum((time[1:] < time[:-1]) & (sequence[1:] == sequence[:-1]))
    for first, middle, stop in _pairs_of_runs(runs, sequence, is_begin):
        if goes_back[stop] == goes_back[first + 1]:
            continue  # in the order of time
        is_last = stop == len(track)
        begins = middle - first
        ends = stop - middle
        if ends > begins or (ends < begins and not is_last):
            continue
        row = np.arange(first, first + ends)
        partner = row + begins
        if (track[row] == track[partner]).all() and (time[row] <= time[partner]).all():
            end[row] = partner
            is_left[first:stop] = False
    return end, is_left


def _pairs_of_runs(runs: Ints, sequence: Ints, is_begin: Mask) -> list[tuple[int, int, int]]:
    """Return (first begin, first end, row behind the last end) of begins that ends of the same sequence follow."""
    first = runs[:-2]
    middle = runs[1:-1]
    if not len(first):
        return []
    fits = is_begin[first] & ~is_begin[middle] & (sequence[first] == sequence[middle])
    return list(
        zip(
            first[fits].tolist(),
            middle[fits].tolist(),
            runs[2:][fits].tolist(),
            strict=True,
        )
    )


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
