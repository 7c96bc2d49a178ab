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
    level = np.zeros(len(order), np.int32)
    columns = (order, lane[order], start[order], (start + duration)[order])
    under_way: list[list[int]] = []
    now: object = None
    for row, where, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if where != now:
            now, under_way = where, [[]]
        track = _first_free(under_way, begin, end)
        if track:
            level[row] = track
    return level


def _first_free(under_way: list[list[int]], begin: int, end: int) -> int:
    """Put a slice on the first track where it nests, given the ends of what is under way on each; return its number."""
    for track, ends in enumerate(under_way):
        while ends and ends[-1] <= begin:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            return track
    under_way.append([end])
    return len(under_way) - 1


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
        for each in np.unique(lane).tolist():
            first, last = np.searchsorted(self._lane, [each, each + 1]).tolist()
            lane_rows = np.flatnonzero(lane == each)
            before = first + np.searchsorted(self._start[first:last], moment[lane_rows], side="right") - 1
            for row, at in zip(lane_rows.tolist(), before.tolist(), strict=True):
                held = self._holding(first, at, int(moment[row]))
                slices[row] = -1 if held < 0 else self._order[self._last_begun(held, last)]
        return slices

    def _holding(self, first: int, at: int, moment: int) -> int:
        for each in range(at, max(first, at - _LOOK_BACK) - 1, -1):
            if moment <= self._end[each]:
                return each
        return -1

    def _last_begun(self, at: int, last: int) -> int:
        last_begun = at
        for each in range(at + 1, last):
            if self._start[each] != self._start[at]:
                break
            if self._level[each] == self._level[at]:
                last_begun = each
        return last_begun
