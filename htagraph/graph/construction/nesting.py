"""The order of moments on each host thread, and what encloses what."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["nest", "nesting_order"]

Array: TypeAlias = npt.NDArray[Any]
_LANE_BITS = 14
"""Bits of a sort key that hold the lane; with the time and 2 bits of order they fit into 63. A job with more lanes is
sorted by columns, which is slower and gives the same."""
_TIME_BITS = 47
"""Bits of a sort key that hold the time since the first event, ns: 39 hours. As above."""
_END, _START, _EMPTY_END, _LATE_END = range(4)


def nesting_order(lane: Array, start: Array, end: Array) -> Array:
    """Return the order by (lane, start, -end): the one that `nest` wants.

    Intervals with equal lane, start and end keep the order in which they came, that of the file: the first of them is
    the outer one. Files are nearly in this order, which a stable sort by one number per interval takes advantage of.
    """
    if not len(start) or not _fits(lane, start, end):
        return np.lexsort((-end, start, lane))
    place = (lane.astype(np.int64) << _TIME_BITS) + (start - start.min())
    order = np.argsort(place, kind="stable")
    place = place[order]
    tied = np.zeros(len(place) + 1, np.bool_)
    tied[1:-1] = place[1:] == place[:-1]
    tied = tied[1:] | tied[:-1]
    among = order[tied]
    order[tied] = among[np.lexsort((-end[among], place[tied]))]
    return order


def _fits(lane: Array, start: Array, end: Array) -> bool:
    """Return whether lane and time fit into one number."""
    return int(end.max()) - int(start.min()) < 1 << _TIME_BITS and int(lane.max()) < 1 << _LANE_BITS


def nest(lane: Array, start: Array, end: Array, is_work: Array, snap: int) -> tuple[Array, Array, Array]:
    """Return (parent, boundaries, at_work) of intervals sorted by (lane, start, -end).

    Intervals of one lane that overlap only in part are allowed: the parent is, of the intervals open at the start that
    contain the whole, the last to start; ends up to `snap` beyond the one that ends first count as contained.

    Args:
        lane: lane of each interval.
        start: its start.
        end: its end.
        is_work: whether it is work, or only names a region.
        snap: tolerated excess of a child's end over its parent's, ns.

    Returns:
        parent: position of the enclosing interval, -1 for none.
        boundaries: 2i for the start and 2i + 1 for the end of interval i, in the order of time on each lane.
        at_work: for each boundary, of the work open behind it the one that ends first, -1 for none.
    """
    nested = _nest_laminar(lane, start, end, is_work)
    if nested is None:
        from htagraph.graph.construction.crossing import nest_crossing

        nested = nest_crossing(lane, start, end, is_work, snap)
    return nested


def _nest_laminar(lane: Array, start: Array, end: Array, is_work: Array) -> tuple[Array, Array, Array] | None:
    """Return the result of `nest` for intervals none of which overlap in part, else None.

    All moments of a lane are put in order; opening counts +1 and closing -1, so an interval's parent is the last one
    before it that opened one level up. They overlap in part nowhere exactly if each closes at its own level.
    """
    count = len(start)
    if not count:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32)
    if not _fits(lane, start, end):
        return None
    origin = start.min()
    opens, closes = _sort_keys(lane.astype(np.int64), start - origin, end - origin)
    backwards = np.arange(count - 1, -1, -1)
    closing = backwards[np.argsort(closes[::-1], kind="stable")]  # of equal ends the last to open closes first
    boundaries = np.empty(2 * count, np.int32)
    at_open = np.arange(count) + np.searchsorted(closes[closing], opens)
    boundaries[at_open] = 2 * np.arange(count)
    is_close = np.ones(2 * count, np.bool_)
    is_close[at_open] = False
    boundaries[is_close] = 2 * closing + 1
    depth = np.cumsum(1 - 2 * is_close.astype(np.int32))
    level = depth[at_open]
    if not np.array_equal(depth[is_close] + 1, level[closing]):
        return None
    parent = _last_one_level_up(level)
    innermost = np.where(is_close, parent[boundaries // 2], boundaries // 2)
    return parent, boundaries, _nearest_work(innermost, parent, is_work)


def _sort_keys(lane: Array, start: Array, end: Array) -> tuple[Array, Array]:
    """Return one number per opening and per closing that sorts them by lane, time, and what comes first at one time.

    Closings come before openings; but an empty interval is over before its container closes, and where a longer one
    opens at the same moment that is the container.
    """
    place = (lane << _TIME_BITS) + start
    empty = start == end
    opens = place << 2 | _START
    close_place = (lane << _TIME_BITS) + end
    begun = place[~empty]
    at = np.minimum(np.searchsorted(begun, close_place), max(0, len(begun) - 1))
    taken_over = begun[at] == close_place if len(begun) else np.zeros(len(start), np.bool_)
    return opens, close_place << 2 | np.where(empty, _EMPTY_END, np.where(taken_over, _END, _LATE_END))


def _last_one_level_up(level: Array) -> Array:
    """Return for each interval the last one before it whose level is one less, -1 at the first level."""
    count = len(level)
    rows = np.arange(count)
    small = level.astype(np.int16) if level.max() < 2**15 else level  # numpy sorts 16 bits in linear time
    by_level = np.argsort(small, kind="stable")
    keys = level[by_level].astype(np.int64) * count + by_level
    at = np.searchsorted(keys, (level.astype(np.int64) - 1) * count + rows) - 1
    return np.where(level > 1, by_level[np.maximum(at, 0)], -1).astype(np.int32)


def _nearest_work(innermost: Array, parent: Array, is_work: Array) -> Array:
    """Return for each place the innermost interval around it that is work, -1 for none."""
    found = innermost.astype(np.int32)
    while True:
        above = (found >= 0) & ~is_work[found]
        if not above.any():
            return found
        found[above] = parent[found[above]]
