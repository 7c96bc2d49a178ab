"""Nesting of intervals that may overlap in part. Compiled with numba, which takes a moment to load."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit

__all__ = ["nest_crossing"]

Array: TypeAlias = npt.NDArray[Any]


@njit(cache=True)
def nest_crossing(
    lane: Array, start: Array, end: Array, is_work: Array, snap: int, encloses: Array
) -> tuple[Array, Array, Array]:
    """Return what `htagraph.graph.construction.nesting.nest` describes, for any intervals."""
    count = len(start)
    parent = np.full(count, -1, np.int32)
    boundaries = np.empty(2 * count, np.int32)
    at_work = np.full(2 * count, -1, np.int32)
    stack = np.empty(count + 1, np.int32)  # open intervals, the one that ends first on top
    bound = end.copy()  # ends after snapping
    height, filled = 0, 0
    for i in range(count + 1):
        new_lane = i == count or (i > 0 and lane[i] != lane[i - 1])
        while height:
            top = stack[height - 1]
            # an interval still contains an empty one at its end
            over = bound[top] < start[i] or (bound[top] == start[i] and end[i] > start[i]) if not new_lane else True
            if not over:
                break
            height -= 1
            boundaries[filled] = 2 * top + 1
            at_work[filled] = _top_work(stack, height, is_work)
            filled += 1
        if i == count:
            break
        if height and bound[i] > bound[stack[height - 1]] and bound[i] - bound[stack[height - 1]] <= snap:
            bound[i] = bound[stack[height - 1]]
        at = height
        while at and bound[stack[at - 1]] < bound[i]:
            stack[at] = stack[at - 1]
            at -= 1
        stack[at] = i
        height += 1
        for below in range(at):  # the parent is the last to start of those that contain it
            if encloses[stack[below]]:
                parent[i] = max(parent[i], stack[below])
        boundaries[filled] = 2 * i
        at_work[filled] = _top_work(stack, height, is_work)
        filled += 1
    return parent, boundaries, at_work


@njit(cache=True)
def _top_work(stack: Array, height: int, is_work: Array) -> int:
    while height and not is_work[stack[height - 1]]:
        height -= 1
    return stack[height - 1] if height else -1
