"""The stable order of whole numbers: several times as fast as a stable sort of positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["stable_order"]

_BITS = 63
"""Bits of a number that is not negative."""


def stable_order(keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the positions of the keys in ascending order of these, of equal ones in the order they have.

    Key and position are put into one number if both fit, and those are sorted.

    Args:
        keys: whole numbers, none of them negative.

    Example:
        >>> stable_order(np.array([5, 2, 5, 1])).tolist()
        [3, 1, 0, 2]
    """
    place = max(0, len(keys) - 1).bit_length()
    if not len(keys) or int(keys.max()).bit_length() + place > _BITS:
        return np.argsort(keys, kind="stable")
    both = keys.astype(np.int64) << place
    both |= np.arange(len(keys))
    both.sort()
    both &= (1 << place) - 1
    return both
