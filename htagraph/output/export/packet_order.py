"""In which order the beginnings of slices must stand in a file of packets, where several begin at one moment."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array

__all__ = ["held_back"]

_ROUNDS = 8
"""Arrows in a row without any time between them that are drawn in their direction; chosen: recorded chains have one or
two. Doubled, so are longer chains."""


def held_back(track: Array, start: Array, duration: Array, arrows: tuple[Array, Array]) -> Array:
    """Return the slices that must come behind all others of their file, in their order; the rest can stay in its order.

    Of slices that begin together on one track, the longer ones must come first, as the others are inside them. An arrow
    goes from what comes first to what comes last, so its tail must come before its head.

    Args:
        track: of each slice, in the order of the file.
        start: ns.
        duration: ns; slices of one track nest.
        arrows: the slices at which arrows begin, and those at which they end.

    Example:
        >>> none = np.zeros(0, np.int64)
        >>> held_back(np.array([1, 1, 2]), np.array([5, 5, 5]), np.array([1, 9, 3]), (none, none)).tolist()
        [0]
    """
    order = np.lexsort((np.arange(len(track)), -duration, start, track))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(track[order]) != 0) | (np.diff(start[order]) != 0)
    group = np.cumsum(new) - 1
    at_once = start[arrows[0]] == start[arrows[1]]
    tail, head = place[arrows[0][at_once]], place[arrows[1][at_once]]
    late = _late(order, group, tail, head)
    level = np.zeros(len(order), np.int64)
    both = late[tail] & late[head]
    for _ in range(_ROUNDS):
        np.maximum.at(level, head[both], level[tail[both]] + 1)
        level = _running(level, group)
    rows = np.flatnonzero(late)
    return order[rows[np.lexsort((rows, level[rows], start[order[rows]]))]]


def _late(order: Array, group: Array, tail: Array, head: Array) -> Array:
    """Return which slices, in `order`, cannot stay where they are in the file."""
    late = order < _running(order, group)
    for _ in range(_ROUNDS):
        late = _running(late.astype(np.int64), group) > 0
        late[head] |= late[tail] | (order[tail] > order[head])
    return _running(late.astype(np.int64), group) > 0


def _running(values: Array, group: Array) -> Array:
    """Return the largest value so far of each group; values are less than their number, or as many."""
    base = group * (len(values) + _ROUNDS + 1)
    return np.asarray(np.maximum.accumulate(values + base) - base) if len(values) else values
