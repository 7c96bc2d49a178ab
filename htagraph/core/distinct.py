"""Which numbers occur: without sorting or hashing them, where their range is known."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["distinct", "sums_by"]

Array: TypeAlias = npt.NDArray[Any]


def distinct(numbers: Array, count: int) -> npt.NDArray[np.int64]:
    """Return the distinct numbers, ascending, of numbers from 0 up to `count`, which itself does not occur.

    Example:
        >>> import numpy as np
        >>> distinct(np.array([3, 1, 3]), 4).tolist()
        [1, 3]
    """
    occurs = np.zeros(count, np.bool_)
    occurs[numbers] = True
    return np.flatnonzero(occurs)


def sums_by(key: Array, value: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return (the distinct keys, ascending; the exact sum of the values of each), for integers.

    Example:
        >>> import numpy as np
        >>> [column.tolist() for column in sums_by(np.array([7, 2, 7]), np.array([1, 5, 3]))]
        [[2, 7], [5, 4]]
    """
    if not len(key):
        return key, np.zeros(0, np.int64)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[first], np.add.reduceat(value[order].astype(np.int64, copy=False), first)
