"""Nesting of intervals that may overlap in part. Compiled with numba, which takes a moment to load."""

from __future__ import annotations

from typing import Any

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["nest_crossing"]


@njit(cache=True, nogil=True)
def nest_crossing(
    lane: Array, start: Array, end: Array, is_work: Array, snap: int, encloses: Array
) -> tuple[Array, Array, Array]:
    """Return what `htagraph.graph.construction.nesting.nest` describes, for any intervals."""
    count = len(start)
    parent = np.full(count, -1, np.int32)
    boundaries = np.empty(2 * count, np.int32)
    at_work = np.full(2 * count, -1, np.int32)
    bound = end.copy()  # ends after snapping
    held = (np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32))
    intervals, out = (start, end, bound, is_work, encloses), (parent, boundaries, at_work)
    first = 0
    while first < count:
        stop = first + 1
        while stop < count and lane[stop] == lane[first]:
            stop += 1
        if not _nest_on_stacks(first, stop, intervals, snap, held, out):
            _nest_on_heaps(first, stop, intervals, snap, held, out)
        first = stop
    return parent, boundaries, at_work


@njit()
def _nest_on_stacks(first: int, stop: int, intervals: Any, snap: int, held: Any, out: Any) -> bool:  # noqa: ANN401
    """Nest the intervals of one lane; return whether each ends within those that are open when it starts.

    Then what is open is a stack in which the last one ends first, and so are those that work, and those that enclose.
    """
    start, end, bound, is_work, encloses = intervals
    open_, working, outer = held
    parent, boundaries, at_work = out
    opened, worked, above = 0, 0, 0
    filled = 2 * first
    for i in range(first, stop + 1):
        # an interval still contains an empty one at its end
        limit = start[i] + (end[i] > start[i]) if i < stop else 0
        while opened and (i == stop or bound[open_[opened - 1]] < limit):
            opened -= 1
            top = open_[opened]
            worked -= is_work[top]
            above -= encloses[top]
            boundaries[filled] = 2 * top + 1
            at_work[filled] = working[worked - 1] if worked else -1
            filled += 1
        if i == stop:
            break
        bound[i] = end[i]
        if opened:
            over = end[i] - bound[open_[opened - 1]]
            if over > snap:
                return False
            if over > 0:
                bound[i] -= over
        open_[opened] = i
        opened += 1
        parent[i] = outer[above - 1] if above else -1
        if is_work[i]:
            working[worked] = i
            worked += 1
        if encloses[i]:
            outer[above] = i
            above += 1
        boundaries[filled] = 2 * i
        at_work[filled] = working[worked - 1] if worked else -1
        filled += 1
    return True


@njit()
def _nest_on_heaps(first: int, stop: int, intervals: Any, snap: int, held: Any, out: Any) -> None:  # noqa: ANN401
    """Nest the intervals of one lane, which may overlap in part.

    Open intervals are in a heap by their end, those that work in another one. Intervals that may be parents are on a
    stack while they are open, each ending before the one below it: of two, one that ends later and starts later hides
    the other. So the work grows with the number of intervals and the logarithm of how many are open at once.
    """
    start, end, bound, is_work, encloses = intervals
    open_, working, outer = held
    parent, boundaries, at_work = out
    heights = np.zeros(3, np.int64)  # of the two heaps and the stack
    filled = 2 * first
    for i in range(first, stop + 1):
        limit = start[i] + (end[i] > start[i]) if i < stop else 0
        while heights[0] and (i == stop or bound[open_[0]] < limit):
            top = _close(open_, working, outer, heights, bound, is_work)
            boundaries[filled] = 2 * top + 1
            at_work[filled] = working[0] if heights[1] else -1
            filled += 1
        if i == stop:
            break
        bound[i] = end[i]
        if heights[0] and 0 < bound[i] - bound[open_[0]] <= snap:
            bound[i] = bound[open_[0]]
        heights[0] = _with(open_, heights[0], bound, i)
        if is_work[i]:
            heights[1] = _with(working, heights[1], bound, i)
        place = _place(outer, heights[2], bound, i)
        parent[i] = outer[place - 1] if place else -1  # the last to start of those that contain it
        if encloses[i]:
            outer[place] = i
            heights[2] = place + 1
        boundaries[filled] = 2 * i
        at_work[filled] = working[0] if heights[1] else -1
        filled += 1


@njit()
def _close(open_: Array, working: Array, outer: Array, heights: Array, bound: Array, is_work: Array) -> int:
    """Take the interval that ends first from all that hold it, and return it."""
    top = open_[0]
    heights[0] = _without_first(open_, heights[0], bound)
    if is_work[top]:
        heights[1] = _without_first(working, heights[1], bound)
    if heights[2] and outer[heights[2] - 1] == top:
        heights[2] -= 1
    return top


@njit()
def _place(outer: Array, height: int, bound: Array, new: int) -> int:
    """Return how many intervals of the stack end no sooner than a new one."""
    low, high = 0, height
    while low < high:
        middle = (low + high) // 2
        if bound[outer[middle]] >= bound[new]:
            low = middle + 1
        else:
            high = middle
    return low


@njit()
def _before(a: int, b: int, bound: Array) -> bool:
    """Return whether interval a ends before interval b does: on equal ends, the last to start ends first."""
    return bound[a] < bound[b] or (bound[a] == bound[b] and a > b)


@njit()
def _with(heap: Array, size: int, bound: Array, new: int) -> int:
    """Put an interval on a heap, whose first one ends first; return the size of the heap then."""
    at = size
    while at and _before(new, heap[(at - 1) // 2], bound):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = new
    return size + 1


@njit()
def _without_first(heap: Array, size: int, bound: Array) -> int:
    """Take the first interval off a heap; return the size of the heap then."""
    size -= 1
    last, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(heap[child + 1], heap[child], bound):
            child += 1
        if not _before(heap[child], last, bound):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return size
