"""Where the slices of a lane go: to tracks on which they nest, or to rows below what is under way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["nesting_tracks", "rows_below"]


def nesting_tracks(lane: Array, start: Array, duration: Array) -> npt.NDArray[np.int32]:
    """Return for each slice which of its lane's tracks it goes to, so that the slices of each track nest.

    The first track of a lane is 0; a slice goes to the first on which it is inside everything that is under way.

    Example:
        >>> nesting_tracks(np.array([1, 1, 1]), np.array([0, 3, 4]), np.array([5, 5, 1])).tolist()
        [0, 1, 0]
    """
    level = np.zeros(len(lane), np.int32)
    if len(lane):
        _assign_tracks(*_in_order(lane, start, duration), level)
    return level


def rows_below(lane: Array, start: Array, duration: Array) -> npt.NDArray[np.int32]:
    """Return for each slice the row of its lane, from 0, that is below all slices that are under way when it starts.

    Example:
        >>> rows_below(np.array([1, 1, 1]), np.array([0, 3, 9]), np.array([5, 5, 1])).tolist()
        [0, 1, 0]
    """
    row = np.zeros(len(lane), np.int32)
    if len(lane):
        _assign_rows(*_in_order(lane, start, duration), row)
    return row


def _in_order(lane: Array, start: Array, duration: Array) -> tuple[Array, Array]:
    """Return slices by lane and start, the longer ones first, and their lanes, starts and ends in that order."""
    order = np.lexsort((-duration, start, lane))
    return order, np.stack((lane[order], start[order], (start + duration)[order]))


@njit(cache=True, nogil=True)
def _assign_tracks(order: Array, columns: Array, level: Array) -> None:
    """Put each slice, in order, on the first track of its lane where it is inside everything that is under way."""
    lane, start, end = columns
    innermost, around = [-1], np.empty(len(order), np.int64)  # by track, by slice: a slice, -1 for none
    for at in range(len(order)):
        if at and lane[at] != lane[at - 1]:
            innermost = [-1]
        track = 0
        while True:
            inner = innermost[track]
            while inner >= 0 and end[inner] <= start[at]:
                inner = around[inner]
            innermost[track] = inner
            if inner < 0 or end[at] <= end[inner]:
                break
            track += 1
            if track == len(innermost):
                innermost.append(-1)
        around[at], innermost[track] = innermost[track], at
        level[order[at]] = track


@njit(cache=True, nogil=True)
def _assign_rows(order: Array, columns: Array, row: Array) -> None:
    """Put each slice, in order, below the slices of its lane that are under way."""
    lane, start, end = columns
    under_way = np.empty(len(order), np.int64)
    count = 0
    for at in range(len(order)):
        if at and lane[at] != lane[at - 1]:
            count = 0
        while count and end[under_way[count - 1]] <= start[at]:
            count -= 1
        row[order[at]] = count
        under_way[count] = at
        count += 1
