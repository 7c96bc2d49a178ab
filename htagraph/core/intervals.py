"""Sets of half-open intervals as pairs of int64 arrays: union, intersection, difference, length.

A set is a pair ``(start, end)`` of arrays of equal length. `union` brings intervals into the normal form that the other
functions expect: sorted, disjoint, none empty. `union`, `intersection` and `difference` cost O(n log n), the rest O(n).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import Ints

__all__ = ["NO_TIME", "Intervals", "clip", "difference", "group_lengths", "intersection", "length", "union"]

Intervals: TypeAlias = tuple[Ints, Ints]
NO_TIME: Intervals = (
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
)
"""The set without any point."""


def union(start: Ints, end: Ints) -> Intervals:
    """Return the normal set that covers the same points as some intervals; touching intervals are joined.

    Example:
        >>> [side.tolist() for side in union(np.array([5, 0, 2, 9]), np.array([7, 3, 5, 9]))]
        [[0], [7]]
    """
    keep = end > start
    start, end = start[keep], end[keep]
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return start[first], reach[last]


def length(intervals: Intervals) -> int:
    """Return the total length of a normal set.

    Example:
        >>> length((np.array([0, 10]), np.array([3, 14])))
        7
    """
    start, end = intervals
    return int((end - start).sum())


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """Return the points in both normal sets.

    Example:
        >>> a, b = (np.array([0, 10]), np.array([5, 20])), (np.array([3]), np.array([12]))
        >>> [side.tolist() for side in intersection(a, b)]
        [[3, 10], [5, 12]]
    """
    # +1 at each start, -1 at each end; ends sort before starts at one moment, so touching intervals do not meet
    time = np.concatenate((a[1], b[1], a[0], b[0]))
    change = np.ones(len(time), dtype=np.int64)
    change[: len(a[1]) + len(b[1])] = -1
    order = np.argsort(time, kind="stable")
    depth = np.cumsum(change[order])
    time = time[order]
    inside = np.flatnonzero(depth[:-1] >= 2) if len(time) else np.zeros(0, dtype=np.int64)
    return union(time[inside], time[inside + 1])


def difference(a: Intervals, b: Intervals) -> Intervals:
    """Return the points in the normal set `a` but not in the normal set `b`.

    Example:
        >>> a, b = (np.array([0, 10]), np.array([5, 20])), (np.array([3]), np.array([12]))
        >>> [side.tolist() for side in difference(a, b)]
        [[0, 12], [3, 20]]
    """
    if not len(a[0]) or not len(b[0]):
        return a
    low, high = min(a[0][0], b[0][0]), max(a[1][-1], b[1][-1])
    start, end = np.append(low, b[1]), np.append(b[0], high)
    keep = end > start
    return intersection(a, (start[keep], end[keep]))


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    """Return the part of a normal set that lies in [low, high).

    Example:
        >>> [side.tolist() for side in clip((np.array([0, 10]), np.array([5, 20])), 3, 12)]
        [[3, 10], [5, 12]]
    """
    start, end = np.maximum(intervals[0], low), np.minimum(intervals[1], high)
    keep = end > start
    return start[keep], end[keep]


def group_lengths(start: Ints, end: Ints, group: Ints, count: int) -> Ints:
    """Return the length of the union of each group's intervals.

    Example:
        >>> group_lengths(np.array([0, 2, 0]), np.array([3, 5, 4]), np.array([0, 0, 1]), 3).tolist()
        [5, 4, 0]
    """
    if not len(start):
        return np.zeros(count, np.int64)
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, group, start)
    np.maximum.at(high, group, end)
    span = np.where(high >= low, high - low, 0) + 1
    place = np.cumsum(span) - span  # move each group to a range of its own, so that one union does for all
    shift = place[group] - low[group]
    first, last = union(start + shift, end + shift)
    total = np.zeros(count, np.int64)
    np.add.at(total, np.searchsorted(place, first, side="right") - 1, last - first)
    return total
