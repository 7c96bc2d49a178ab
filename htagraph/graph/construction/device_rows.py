"""Events of a device's row that lie within one another: one piece of work, and names around it and inside it.

The profiler before Kineto wrote each operator's time on its device, so that `aten::conv2d` lies around
`aten::convolution`, and so on down to the operator that ran the kernel, and to small operators inside this.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.parents import nearest
from htagraph.graph.accept import confidence, of_agreement
from htagraph.graph.construction.nesting import nest, nesting_order
from htagraph.graph.tolerances import LIMITS

__all__ = ["names_of_work"]


def names_of_work(
    row: Array,
    start: Ints,
    end: Ints,
    launched: Mask,
    operators: Mask,
) -> Mask:
    """Return which events of a device only name work that another event of the row is.

    Among events within one another, the work is the outermost one that is not mostly filled by events inside it. An
    event with a launch is always work. So is everything on a row where events overlap without one being inside the
    other, or where so few do that this may be chance, unless they have the names of operators: there, work runs side by
    side.

    Args:
        row: the row of each event, by number.
        start: when each event starts, ns.
        end: when each event ends, ns.
        launched: which events carry the id of a launch.
        operators: which events have the name of an operator of the host.

    Returns:
        A mask of the events.

    Example:
        >>> start = np.array([0, 1, 2, 20])
        >>> end = np.array([10, 9, 3, 30])
        >>> no = np.zeros(4, np.bool_)
        >>> names_of_work(np.zeros(4, np.int64), start, end, launched=no, operators=~no).tolist()
        [True, False, True, False]
    """
    nested = np.zeros(len(row), np.bool_)
    candidates = np.flatnonzero(~launched)
    order = candidates[
        nesting_order(
            row[candidates],
            start[candidates],
            end[candidates],
        )
    ]
    row = row[order]
    start = start[order]
    end = end[order]
    if not _overlap(row, start, end).any():
        return nested
    is_open = np.ones(len(order), np.bool_)
    parent, _, _ = nest(row, start, end, is_open, 0)
    is_inside = parent >= 0
    filled = np.bincount(
        parent[is_inside],
        weights=(end - start)[is_inside],
        minlength=len(order),
    )
    is_frame = filled > LIMITS.most * (end - start)
    is_part = nearest(parent, ~is_frame, parent) >= 0
    nested[order] = (is_frame | is_part) & _nests(
        row,
        start,
        end,
        operators[order],
    )
    return nested


def _overlap(row: Array, start: Ints, end: Ints) -> Mask:
    """Return which events start before the event ahead on their row ends.

    Args:
        row: the row of each event, in the order of nesting.
        start: when each event starts, ns.
        end: when each event ends, ns.
    """
    follows = row[1:] == row[:-1]
    return np.append(False, follows & (start[1:] < end[:-1]))


@cache
def _fewest_nested() -> int:
    """Return how many pieces of work have to lie in one another before that is no chance.

    Of two pieces of work that run side by side, half would lie in one another.
    """
    number = 1
    while not confidence(of_agreement(np.ones(number, np.bool_), np.full(number, 0.5))):
        number += 1
    return number


def _nests(row: Array, start: Ints, end: Ints, operators: Mask) -> Mask:
    """Return which events are on rows whose events lie within one another, damaged events left out.

    Args:
        row: the row of each event, in the order of nesting.
        start: when each event starts, ns.
        end: when each event ends, ns.
        operators: which events have the name of an operator of the host.
    """
    overlaps = _overlap(row, start, end)
    crosses = overlaps & (end > np.append(0, end[:-1]))
    crossings = np.bincount(row[crosses], minlength=len(row) + int(row.max()) + 1)
    together = np.bincount(row[overlaps], minlength=len(crossings))
    named = np.bincount(row[overlaps & operators], minlength=len(crossings))
    is_no_chance = together >= _fewest_nested()
    is_no_chance |= named >= LIMITS.nearly_all * together
    nests = crossings <= LIMITS.damaged * together
    return (nests & is_no_chance)[row]
