"""Intervals of time as pictures of rows and columns, which are as large for a million intervals as for ten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array

__all__ = [
    "CLASS_LABELS", "class_axis", "columns_of", "counts_of", "covered", "highest_of_steps", "longest", "mean_of_steps",
    "running", "used_classes",
]  # fmt: skip

_MAX_COLUMNS = 800
"""Columns of time. Chosen: those of a figure 1,400 pixels wide are two pixels. Doubled, files are twice as large."""
_MAX_CELLS = 100_000
"""Cells of a picture. Chosen: they take about 0.6 MB in a file. Doubled, twice that."""
_MIN_COLUMNS = 100
"""Columns that are left to pictures of many rows. Doubled, a job of 4,096 ranks takes 5 MB."""
_BOUNDS_US = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
"""Lower ends, µs. Chosen: half a decade, so that all of them have a label of their own at a width of 700 pixels."""
CLASS_LABELS = [
    "0", "< 1 µs", "1 µs", "3 µs", "10 µs", "30 µs", "100 µs", "300 µs", "1 ms", "3 ms", "10 ms", "30 ms", "100 ms",
    "300 ms", "1 s",
]  # fmt: skip
"""Of the classes: what belongs to them is at least that long."""


def columns_of(begin: float, end: float, rows: int) -> npt.NDArray[np.float64]:
    """Return the edges of the columns of a picture of some rows."""
    count = max(_MIN_COLUMNS, min(_MAX_COLUMNS, _MAX_CELLS // max(rows, 1)))
    return np.linspace(begin, end if end > begin else begin + 1.0, count + 1)


def covered(row: Array, start: Array, end: Array, edges: Array, rows: int) -> npt.NDArray[np.float64]:
    """Return for each row and column how much of its time intervals cover; those that overlap count each.

    Example:
        >>> covered(np.array([0]), np.array([1.0]), np.array([4.0]), np.array([0.0, 2.0, 4.0]), 1).tolist()
        [[1.0, 2.0]]
    """
    picture = np.zeros((rows, len(edges) - 1))
    order = np.argsort(row, kind="stable")
    bounds = np.searchsorted(row[order], np.arange(rows + 1))
    for at in range(rows):
        mine = order[bounds[at] : bounds[at + 1]]
        if len(mine):
            picture[at] = np.diff(_beyond(start[mine], edges) - _beyond(end[mine], edges))
    return np.maximum(picture, 0.0)


def longest(row: Array, start: Array, end: Array, code: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return for each row and column the code of the intervals that cover most of it; NaN where none do.

    Args:
        row: of each interval.
        start: of each.
        end: of each.
        code: of each, from 0.
        edges: of the columns.
    """
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
    order = np.lexsort((start, row))
    bounds = np.searchsorted(row[order], np.arange(rows + 1))
    for at in range(rows):
        mine = order[bounds[at] : bounds[at + 1]]
        if len(mine):
            found = np.searchsorted(start[mine], middles, side="right") - 1
            there = mine[np.maximum(found, 0)]
            picture[at] = np.where((found >= 0) & (end[there] > middles), there, -1)
    return picture


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


def counts_of(times: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many times fall into each class.

    Args:
        times: µs; what is below 0 counts as 0.

    Example:
        >>> counts_of(np.array([0.0, 0.5, 1.0, 2.9, 5e6])).tolist()
        [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    place = np.where(times <= 0, 0, 1 + np.searchsorted(_BOUNDS_US, times, side="right"))
    return np.bincount(place.astype(np.int64), minlength=len(CLASS_LABELS)).astype(np.int64)


def used_classes(counts: Sequence[npt.NDArray[np.int64]]) -> slice:
    """Return the classes from the first to the last one that something falls into; empty ones outside leave no room.

    Args:
        counts: of several histograms, which share the classes.

    Example:
        >>> used_classes([counts_of(np.array([2.0])), counts_of(np.array([40.0]))])
        slice(2, 6, None)
    """
    used = np.flatnonzero(np.sum(counts, axis=0)) if len(counts) else np.zeros(0, np.int64)
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)


def class_axis(title: str, shown: slice) -> dict[str, Any]:
    """Return an axis of classes, in their order."""
    labels = CLASS_LABELS[shown]
    return {"type": "category", "categoryorder": "array", "categoryarray": labels, "title": {"text": title}}
