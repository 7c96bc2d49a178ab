"""Memory that is used again once nobody looks into it: new memory costs a scan as much as the scan itself."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array

__all__ = ["Reused"]


_MAX_BYTES = 256 << 20
"""Bytes of the largest memory that is kept. Chosen: a block of text needs a tenth; larger ones hold one huge event.
Doubled, a file with such an event takes that much more memory until it is read."""
_OWN_REFERENCES = 2
"""References that Python counts to an array nobody else looks into: the one that is kept, and the one it counts by."""


class Reused:
    """Lends an array again and again.

    An array that is a part of the lent one refers to it, so it is not lent again while there is one.

    Args:
        dtype: the type of its values.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._kept: Array = np.empty(0, self._dtype)

    def lend(self, count: int) -> Array:
        """Return an array of `count` values that nobody else has, whatever they are.

        Example:
            >>> memory = Reused(np.int64)
            >>> first, second = memory.lend(3), memory.lend(3)
            >>> np.shares_memory(first, second)
            False
        """
        if len(self._kept) < count or sys.getrefcount(self._kept) > _OWN_REFERENCES:
            made = np.empty(count, self._dtype)
            if made.nbytes > _MAX_BYTES:
                return made
            self._kept = made
        return self._kept[:count]
