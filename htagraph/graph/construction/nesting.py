"""The order of starts and ends on each host thread, and which activity encloses which."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array

__all__ = ["nest", "nesting_order"]


def nesting_order(lane: Array, start: Array, end: Array) -> Array:
    """Return the order by (lane, start, -end), which `nest` needs.

    Intervals with equal lane, start and end keep the order of the file: the first is the outer one. Files are
    nearly in this order already, which makes a stable sort by one number per interval fast.
    """
    if not len(start):
        return np.zeros(0, np.int64)
    first_ns = int(start.min())
    span_ns = int(end.max()) - first_ns + 1
    lane_count = int(lane.max()) + 1
    is_too_large = span_ns * lane_count > np.iinfo(np.int64).max
    if is_too_large:  # sorting by columns is slower, and gives the same order
        return np.lexsort((-end, start, lane))
    lane_begin = lane.astype(np.int64) * span_ns
    place = lane_begin + (start - first_ns)
    order = np.argsort(place, kind="stable")
    place = place[order]
    tied = np.zeros(len(place) + 1, np.bool_)
    tied[1:-1] = place[1:] == place[:-1]
    tied = tied[1:] | tied[:-1]
    among = order[tied]
    order[tied] = among[np.lexsort((-end[among], place[tied]))]
    return order


def nest(
    lane: Array, start: Array, end: Array, is_work: Array, snap: int, encloses: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return (parent, boundaries, at_work) of intervals sorted by (lane, start, -end).

    Intervals of one lane may overlap only in part: the parent of an interval is the last to start of the intervals that
    contain it. An end up to `snap` later than the end of the open interval that ends first counts as contained.

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
    from htagraph.graph.construction.partial_overlap import nest_crossing  # numba takes a moment to load

    every = np.ones(len(start), np.bool_) if encloses is None else encloses
    return nest_crossing(lane, start, end, is_work, snap, every)
