"""Climbing a forest that is given as an array of parents, for very many rows. Compiled by numba, cached on disk."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["climb"]


@njit(cache=True, nogil=True)
def climb(above: Array, wanted: Array, rows: Array, levels: int) -> Array:
    """Return, for each row, the row itself or its nearest ancestor that is wanted; -1 if there is none.

    Rows that are not there after `levels` levels have the ancestor that they came to.

    Args:
        above: the parent of each row, -1 for none; without cycles.
        wanted: mask of the rows that are looked for.
        rows: the rows to begin at; -1 gives -1.
        levels: how far each row climbs.
    """
    nearest = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        at = rows[i]
        for _ in range(levels):
            if at < 0 or wanted[at]:
                break
            at = above[at]
        nearest[i] = at
    return nearest
