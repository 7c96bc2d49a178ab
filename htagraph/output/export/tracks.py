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

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["Slices", "nesting_tracks"]


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
    level = np.zeros(len(order), np.int32)
    if len(order):
        columns = lane[order], start[order], (start + duration)[order]
        _assign_tracks(order, np.stack(columns), level)
    return level


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
        self._lane, self._level = lane[self._order], level[self._order]
        self._start = start[self._order].astype(np.int64)
        self._end = self._start + duration[self._order]

    def met(self, lane: Array, moment: Array) -> npt.NDArray[np.int64]:
        """Return the slice that each end of an arrow belongs to, -1 for none.

        The slice that begins at the moment, the innermost of several; else the innermost around it, as Perfetto draws
        it: of slices that began together the one that began last.
        """
        meeting = np.full(len(lane), -1, np.int64)
        for each in np.unique(lane).tolist():
            bounds = tuple(np.searchsorted(self._lane, [each, each + 1]).tolist())
            rows = np.flatnonzero(lane == each)
            found = np.empty(len(rows), np.int64)
            _meet(moment[rows].astype(np.int64), bounds, self._start, self._end, self._level, found)
            meeting[rows] = np.where(found < 0, -1, self._order[found]) if len(self._order) else -1
        return meeting


@njit(cache=True, nogil=True)
def _meet(moments: Array, bounds: tuple[int, int], start: Array, end: Array, level: Array, found: Array) -> None:
    """Fill `found` with the slice, of those between two bounds, that each moment meets; -1 for none."""
    first, last = bounds
    for row in range(len(moments)):
        at = first + np.searchsorted(start[first:last], moments[row], side="right") - 1
        least = max(first, at - _LOOK_BACK)
        while at >= least and end[at] < moments[row]:
            at -= 1
        held = at if at >= least else -1
        found[row] = held
        other = held + 1
        while held >= 0 and other < last and start[other] == start[held]:
            if level[other] == level[held]:
                found[row] = other
            other += 1
