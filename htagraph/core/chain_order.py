"""A topological order that stays near memory: each vertex follows what it waited for wherever that is possible."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit

__all__ = ["chain_order"]


def chain_order(offsets: Array, targets: Array) -> Array:
    """Return the vertices in a topological order that follows one chain as far as it goes, then takes up the next.

    Kahn's algorithm with a stack. A pass over the vertices in this order reads most moments right after it wrote them;
    with a queue (`traverse.topological_order`) it takes turns between all threads and streams of all ranks, which takes
    five times as long in a job of eight. If the graph has a cycle, the vertices on it and behind it are missing.

    Args:
        offsets: where the targets of each vertex begin.
        targets: the vertices that wait for each vertex.
    """
    count = len(offsets) - 1
    waiting = np.bincount(targets, minlength=count).astype(np.int32)
    order, stack = np.empty(count, np.int32), np.empty(count, np.int32)
    first = np.flatnonzero(waiting == 0)[::-1]
    stack[: len(first)] = first
    filled = _follow(for_reading(offsets, np.int64), for_reading(targets, np.int32), waiting, order, stack, len(first))
    return order[:filled]


@njit(cache=True, nogil=True)
def _follow(offsets: Array, targets: Array, waiting: Array, order: Array, stack: Array, height: int) -> int:
    """Write the vertices in order, and return how many; the first `height` of the stack wait for none."""
    filled = 0
    while height:
        height -= 1
        vertex = stack[height]
        order[filled] = vertex
        filled += 1
        for i in range(offsets[vertex + 1] - 1, offsets[vertex] - 1, -1):
            target = targets[i]
            waiting[target] -= 1
            if waiting[target] == 0:
                stack[height] = target
                height += 1
    return filled
