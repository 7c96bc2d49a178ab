"""What Perfetto can draw on one track: slices that nest, and arrows that meet a slice.

Perfetto's rules, as observed of its trace processor (v52):

- Slices of a track are taken in the order of (start, longer first, place in the file). One that begins inside another
  and ends behind it is dropped; it needs a track of its own.
- The end of an arrow meets the slice of its track that began last, even if that is over. At one moment, events count in
  the order of the file, slices first if they stand first.
- An arrow is turned around if the slice at its head began before the slice at its tail.
- A second ``s`` of an id before its ``f``, and an end where no slice ever began, are import errors; an ``f`` without an
  ``s`` is ignored.
- A number with more than 18 decimals is misread (0.00043402777777777775 as 0.0056): counters need fewer.
- Times below 0 are dropped without a word, and times beyond 2^53 ns lose nanoseconds: times must be relative.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import for_reading, njit

__all__ = ["Slices", "nesting_tracks"]

Array: TypeAlias = npt.NDArray[Any]

_LOOK_BACK = 10_000
"""Slices; chosen: an arrow into one that began before so many others is not worth the search. Doubled, searching for an
arrow that meets nothing takes twice as long."""


def nesting_tracks(lane: Array, start: Array, duration: Array) -> npt.NDArray[np.int32]:
    """Return for each slice which of its lane's tracks it goes to, so that the slices of each track nest.

    The first track of a lane is 0; a slice goes to the first on which it is inside everything that is under way.

    Example:
        >>> nesting_tracks(np.array([1, 1, 1]), np.array([0, 3, 4]), np.array([5, 5, 1])).tolist()
        [0, 1, 0]
    """
    order = np.lexsort((-duration, start, lane))
    level, track = np.empty(len(order), np.int32), np.empty(len(order), np.int32)
    columns = (lane[order], start[order], (start + duration)[order])
    _put(track, *(for_reading(column, np.int64) for column in columns))
    level[order] = track
    return level


@njit(cache=True, nogil=True)
def _put(track: Array, lane: Array, begin: Array, end: Array) -> None:
    """Put each slice on the first track where it nests, given slices by lane, begin and length."""
    top, below = np.empty(len(lane) + 1, np.int64), np.empty(len(lane), np.int64)  # what is under way on each track
    tracks = 0
    for row in range(len(lane)):
        if row == 0 or lane[row] != lane[row - 1]:
            tracks, top[0] = 1, -1
        at = 0
        while at < tracks:
            while top[at] >= 0 and end[top[at]] <= begin[row]:
                top[at] = below[top[at]]
            if top[at] < 0 or end[row] <= end[top[at]]:
                break
            at += 1
        if at == tracks:
            tracks, top[at] = tracks + 1, -1
        below[row], top[at], track[row] = top[at], row, at


class Slices:
    """The slices of a file by lane and time: finds the one that an arrow meets.

    Args:
        lane: of each slice.
        start: ns.
        duration: ns.
        level: from `nesting_tracks`.
    """

    def __init__(self, lane: Array, start: Array, duration: Array, level: Array) -> None:
        self._order = np.lexsort((-duration, start, lane))
        self._lane, self._start = lane[self._order], start[self._order]
        self._end, self._level = self._start + duration[self._order], level[self._order]

    def met(self, lane: Array, moment: Array) -> npt.NDArray[np.int64]:
        """Return the slice that each end of an arrow belongs to, -1 for none.

        The slice that begins at the moment, the innermost of several; else the innermost around it, as Perfetto draws
        it: of slices that began together the one that began last.
        """
        slices = np.full(len(lane), -1, np.int64)
        columns = (self._start, self._end, self._level)
        start, end, level = (for_reading(column, np.int64) for column in columns)
        for each in np.unique(lane).tolist():
            first, last = np.searchsorted(self._lane, [each, each + 1]).tolist()
            rows = np.flatnonzero(lane == each)
            before = first + np.searchsorted(self._start[first:last], moment[rows], side="right") - 1
            _meet(before, first, last, for_reading(moment[rows], np.int64), start, end, level)
            slices[rows[before >= 0]] = self._order[before[before >= 0]]
        return slices


@njit(cache=True, nogil=True)
def _meet(  # noqa: PLR0913, PLR0917 - slices as arrays
    before: Array, first: int, last: int, moment: Array, start: Array, end: Array, level: Array
) -> None:
    """Replace the last slice that begins up to each moment by the one that an arrow meets then, -1 for none.

    Args:
        before: positions of slices of one lane; those of the lane are `first` up to `last`, by begin.
        first: the first slice of the lane.
        last: the slice behind its last.
        moment: of each arrow.
        start: of each slice.
        end: of each slice.
        level: the track of each slice.
    """
    for i in range(len(before)):
        least, held = max(first, before[i] - _LOOK_BACK), -1
        for each in range(before[i], least - 1, -1):
            if moment[i] <= end[each]:
                held = each
                break
        before[i] = held
        if held < 0:
            continue
        for each in range(held + 1, last):
            if start[each] != start[held]:
                break
            if level[each] == level[held]:
                before[i] = each
