"""Intervals of time as pictures of rows and columns, which are as large for a million intervals as for ten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.output.plot.style import time_unit

__all__ = ["TimeColumns", "columns_of", "covered", "highest_of_steps", "longest", "mean_of_steps", "running"]

_CELLS = 100_000
"""Cells of a picture, which take about 0.6 MB in a file; of many rows, columns of time are fewer."""


class TimeColumns(NamedTuple):
    """Columns of time of a picture."""

    edges: npt.NDArray[np.float64]
    """µs."""
    factor: float
    """µs of the unit of their axis."""
    unit: str

    @property
    def middles(self) -> npt.NDArray[np.float64]:
        """The middles of the columns, in their unit."""
        return (self.edges[1:] + self.edges[:-1]) / 2 / self.factor

    def axis(self, since: str = "the job's first activity") -> dict[str, Any]:
        """Return their axis."""
        return {"title": f"time since {since} ({self.unit})"}


def columns_of(begin: float, end: float, rows: int) -> TimeColumns:
    """Return the columns of a picture of some rows, from and to a time in µs.

    There are at most 800, two pixels each in a figure 1,400 pixels wide, and at least 100.
    """
    count = max(100, min(800, _CELLS // max(rows, 1)))
    return TimeColumns(np.linspace(begin, end if end > begin else begin + 1.0, count + 1), *time_unit(end))


def covered(row: Array, start: Array, end: Array, edges: Array, rows: int) -> npt.NDArray[np.float64]:
    """Return for each row and column how much of its time intervals cover; those that overlap count each.

    Example:
        >>> covered(np.array([0]), np.array([1.0]), np.array([4.0]), np.array([0.0, 2.0, 4.0]), 1).tolist()
        [[1.0, 2.0]]
    """
    picture = np.zeros((rows, len(edges) - 1))
    for at, inside in _by_row(row, rows, np.argsort(row, kind="stable")):
        picture[at] = np.diff(_beyond(start[inside], edges) - _beyond(end[inside], edges))
    return np.maximum(picture, 0.0)


def longest(row: Array, start: Array, end: Array, code: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return for each row and column the code (from 0) of the intervals that cover most of it; NaN where none do."""
    rows, codes = int(row.max(initial=-1)) + 1, int(code.max(initial=-1)) + 1
    best = np.full((rows, len(edges) - 1), np.nan)
    most = np.zeros_like(best)
    for each in range(codes):
        chosen = code == each
        time = covered(row[chosen], start[chosen], end[chosen], edges, rows)
        better = time > most
        best[better], most[better] = each, time[better]
    return best


def running(row: Array, start: Array, end: Array, edges: Array, rows: int) -> npt.NDArray[np.int64]:
    """Return for each row and column the position of an interval that runs in its middle; -1 for none.

    Of intervals that overlap it is the one that began last.
    """
    middles = (edges[1:] + edges[:-1]) / 2
    picture = np.full((rows, len(middles)), -1, np.int64)
    for at, inside in _by_row(row, rows, np.lexsort((start, row))):
        found = np.searchsorted(start[inside], middles, side="right") - 1
        there = inside[np.maximum(found, 0)]
        picture[at] = np.where((found >= 0) & (end[there] > middles), there, -1)
    return picture


def _by_row(row: Array, rows: int, order: Array) -> Iterator[tuple[int, Array]]:
    """Yield each row that has intervals, and their positions in an order that sorts them by row."""
    bounds = np.searchsorted(row[order], np.arange(rows + 1))
    for at in np.flatnonzero(np.diff(bounds)).tolist():
        yield at, order[bounds[at] : bounds[at + 1]]


def mean_of_steps(time: Array, value: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return the mean over each column of a value that holds from each time to the next; 0 before the first.

    Example:
        >>> mean_of_steps(np.array([1.0, 3.0]), np.array([4.0, 0.0]), np.array([0.0, 2.0, 4.0])).tolist()
        [2.0, 2.0]
    """
    change = np.diff(value, prepend=0.0)
    order = np.argsort(time, kind="stable")
    moments, change = time[order], change[order]
    before = np.searchsorted(moments, edges, side="right")
    level, moment = (np.concatenate(([0.0], np.cumsum(each))) for each in (change, change * moments))
    area = level[before] * edges - moment[before]
    return np.diff(area) / np.diff(edges)


def highest_of_steps(time: Array, value: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return the highest in each column of a value that holds from each time to the next; 0 before the first.

    Example:
        >>> highest_of_steps(np.array([1.0, 3.0]), np.array([4.0, 0.0]), np.array([0.0, 2.0, 4.0, 6.0])).tolist()
        [4.0, 4.0, 0.0]
    """
    order = np.argsort(time, kind="stable")
    moments, values = time[order], np.concatenate(([0.0], value[order], [-np.inf]))
    first = np.searchsorted(moments, edges[:-1], side="right")  # the place in `values` of what holds at an edge
    last = np.searchsorted(moments, edges[1:], side="left")
    last[-1] = len(moments)
    highest = np.maximum.reduceat(values, np.ravel([first, np.maximum(last, first) + 1], order="F")[:-1])[::2]
    return np.asarray(highest, np.float64)


def _beyond(moments: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return for each edge how far all moments before it lie before it, summed."""
    moments = np.sort(moments)
    sums = np.concatenate(([0.0], np.cumsum(moments)))
    before = np.searchsorted(moments, edges)
    return np.asarray(before * edges - sums[before], np.float64)
