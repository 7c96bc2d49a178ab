"""Times of a whole file, and which of its events lie in windows of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array

__all__ = ["Extent", "Extents", "merged", "overlaps"]

_SECOND_NS = 1_000_000_000
_HOUR_NS = 3600 * _SECOND_NS
_LEAST = int(np.iinfo(np.int64).min)
_OUTLIER_SPREADS = 4
"""An event is a clock error of the profiler if it starts more than this many interquartile ranges of all starts, plus
an hour, before the first quartile. Chosen: recordings take minutes, and known errors (starts at 0, or hours early) lie
far beyond. Doubling it keeps errors in long recordings: one of 10 minutes has a range of about 5."""


class Extent(NamedTuple):
    """Times of the complete events of a file, ns as in the file."""

    valid_from: int
    """What starts earlier is a clock error of the profiler."""
    early: int
    """Number of such events."""
    first: int
    """The least start that is valid."""
    last: int
    """The latest start."""
    longest: int
    """The longest duration."""
    events: int
    """Number of events."""


class Extents:
    """The extent of the events seen so far: starts are counted by the second."""

    def __init__(self) -> None:
        self._seconds: dict[int, tuple[int, int]] = {}
        """Number of starts and least start by second."""
        self._last, self._longest = _LEAST, 0

    @property
    def count(self) -> int:
        """Number of events seen."""
        return sum(count for count, _ in self._seconds.values())

    def see(self, start: Array, duration: Array) -> None:
        """Count events, given their starts and durations, ns."""
        if not len(start):
            return
        self._last = max(self._last, int(start.max()))
        self._longest = max(self._longest, int(duration.max()))
        origin = int(start.min()) // _SECOND_NS
        second = start // _SECOND_NS - origin
        if int(second.max()) <= len(start):
            in_second = np.bincount(second)
            earliest = np.full(len(in_second), np.iinfo(np.int64).max)
            np.minimum.at(earliest, second, start)
            seconds = np.flatnonzero(in_second)
            counts, firsts = in_second[seconds], earliest[seconds]
        else:
            seconds, number, counts = np.unique(second, return_inverse=True, return_counts=True)
            firsts = np.full(len(seconds), np.iinfo(np.int64).max)
            np.minimum.at(firsts, number, start)
        for each, count, first in zip((seconds + origin).tolist(), counts.tolist(), firsts.tolist(), strict=True):
            before = self._seconds.get(each, (0, first))
            self._seconds[each] = before[0] + count, min(before[1], first)

    def result(self) -> Extent:
        """Return the extent of all events seen.

        Example:
            >>> extents = Extents()
            >>> extents.see(np.array([5, *[9000 * 10**9] * 99]), np.zeros(100, np.int64))
            >>> extents.result().early
            1
        """
        if not self._seconds:
            return Extent(_LEAST, 0, 0, 0, 0, 0)
        seconds = sorted(self._seconds)
        behind = np.cumsum([self._seconds[second][0] for second in seconds])
        # quartiles, not the least start: some files have a start of 0 for all events of a kind
        low, high = (seconds[np.searchsorted(behind, (behind[-1] - 1) * part // 4, "right")] for part in (1, 3))
        limit = low - _OUTLIER_SPREADS * (high - low) - _HOUR_NS // _SECOND_NS
        early = sum(self._seconds[second][0] for second in seconds if second < limit)
        first = self.first(limit * _SECOND_NS)
        return Extent(limit * _SECOND_NS, early, first, self._last, self._longest, int(behind[-1]))

    def first(self, valid_from: int) -> int:
        """Return the least start from a moment on, a whole second in ns; that of all events if there is none."""
        firsts = [first for _, first in self._seconds.values()]
        return min((first for first in firsts if first >= valid_from), default=min(firsts, default=0))


def overlaps(start: Array, duration: Array, windows: Array) -> npt.NDArray[np.bool_]:
    """Return which events overlap or touch one of some windows.

    Args:
        start: when each begins, ns.
        duration: how long each takes, ns.
        windows: begin and end of each, ns, ascending and apart.

    Example:
        >>> overlaps(np.array([0, 5, 7]), np.array([4, 1, 9]), np.array([[6, 7], [20, 30]])).tolist()
        [False, True, True]
    """
    if not len(windows):
        return np.zeros(len(start), np.bool_)
    at = np.searchsorted(windows[:, 1], start)  # the first window that ends at or after the start
    begins = windows[np.minimum(at, len(windows) - 1), 0]
    return np.asarray((at < len(windows)) & (begins <= start + duration))


def merged(windows: Array) -> Array:
    """Return windows (begin, end) as the fewest that cover the same, ascending and apart.

    Example:
        >>> merged(np.array([[5, 9], [0, 2], [8, 12]])).tolist()
        [[0, 2], [5, 12]]
    """
    windows = windows[np.argsort(windows[:, 0], kind="stable")]
    if not len(windows):
        return windows
    reach = np.maximum.accumulate(windows[:, 1])
    begins = np.ones(len(windows), np.bool_)
    begins[1:] = windows[1:, 0] > reach[:-1]
    last = np.append(np.flatnonzero(begins)[1:] - 1, len(windows) - 1)
    return np.stack([windows[begins, 0], reach[last]], axis=1)
