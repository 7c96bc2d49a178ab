"""The order of starts and ends on each host thread, and which activity encloses which."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.parents import nearest

__all__ = ["nest", "nesting_order"]

_LANE_BITS = 14
"""Bits of a sort key that hold the lane; with the time and 2 bits of order they fit into 63. A job with more lanes is
sorted by columns, which is slower and gives the same."""
_TIME_BITS = 47
"""Bits of a sort key that hold the time since the first event, ns: 39 hours. As above."""
_MANY = 50_000
"""Intervals from which on the compiled walk for any intervals is used at once. Measured: it takes 0.02 µs for each
where sorting takes 0.3 µs, and loading it takes 8 ms beside the compiled scan that such files are read by. Doubled,
traces of 50,000 to 100,000 host events load 20 ms later."""
_END, _START, _EMPTY_END, _LATE_END = range(4)


def nesting_order(lane: Array, start: Array, end: Array) -> Array:
    """Return the order by (lane, start, -end), which `nest` needs.

    Intervals with equal lane, start and end keep the order of the file: the first of them is the outer one. Files are
    nearly in this order already, which makes a stable sort by one number per interval fast.
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


def nest(
    lane: Array, start: Array, end: Array, is_work: Array, snap: int, encloses: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return (parent, boundaries, at_work) of intervals sorted by (lane, start, -end).

    Intervals of one lane may overlap only in part: the parent of an interval is the last to start of those that contain
    it. An end up to `snap` later than the end of the open interval that ends first counts as contained.

    Args:
        lane: lane of each interval.
        start: its start.
        end: its end.
        is_work: whether it does work (operators, calls) or only names a region (annotations).
        snap: by how much a child may end after its parent, ns.
        encloses: which intervals may be parents; None for all.

    Returns:
        parent: position of the enclosing interval, -1 for none.
        boundaries: 2i for the start and 2i + 1 for the end of interval i, by lane and time.
        at_work: for each boundary, the innermost interval with `is_work` that is open right after it, -1 for none.
    """
    one_by_one = encloses is not None or len(start) >= _MANY
    nested = None if one_by_one else _nest_laminar(lane, start, end, is_work)
    if nested is None:
        from htagraph.graph.construction.partial_overlap import nest_crossing

        every = np.ones(len(start), np.bool_) if encloses is None else encloses
        nested = nest_crossing(lane, start, end, is_work, snap, every)
    return nested


def _nest_laminar(lane: Array, start: Array, end: Array, is_work: Array) -> tuple[Array, Array, Array] | None:
    """Return the result of `nest` if no two intervals overlap only in part, else None.

    All starts and ends of a lane are sorted; a start counts +1 and an end -1, so an interval's parent is the last one
    before it that opened one level up. No two overlap only in part exactly if each ends at the level it opened at.
    """
    count = len(start)
    if not count:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32)
    if not _fits(lane, start, end):
        return None
    origin = start.min()
    opens, closes = _sort_keys(lane.astype(np.int64), start - origin, end - origin)
    backwards = np.arange(count - 1, -1, -1)
    closing = backwards[np.argsort(closes[::-1], kind="stable")]  # on equal ends the last to open closes first
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
    work = np.where(is_close, parent[boundaries // 2], boundaries // 2).astype(np.int32)
    idle = np.flatnonzero((work >= 0) & ~is_work[work])
    work[idle] = nearest(parent, is_work, work[idle])
    return parent, boundaries, work


def _sort_keys(lane: Array, start: Array, end: Array) -> tuple[Array, Array]:
    """Return sort keys of starts and of ends: by lane, time, and the order within one moment.

    Within a moment ends come before starts. Exceptions: an empty interval ends before the interval around it does, and
    if a longer interval starts at the same moment, the empty one is inside that.
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
    """Return for each interval the last one before it that is one level up, -1 at the first level."""
    count = len(level)
    rows = np.arange(count)
    small = level.astype(np.int16) if level.max() < 2**15 else level  # numpy sorts 16 bits in linear time
    by_level = np.argsort(small, kind="stable")
    keys = level[by_level].astype(np.int64) * count + by_level
    at = np.searchsorted(keys, (level.astype(np.int64) - 1) * count + rows) - 1
    return np.where(level > 1, by_level[np.maximum(at, 0)], -1).astype(np.int32)
