"""Which numbers occur: without sorting or hashing them, where their range is known."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["distinct", "is_any_of", "occurring", "sums_by"]

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


def is_any_of(column: Array, numbers: Array, count: int) -> npt.NDArray[np.bool_]:
    """Return which entries of a column are among some numbers, by a table of all that may occur.

    Args:
        column: numbers from -1 up to `count` - 1, which itself does not occur.
        numbers: those that are looked for, in the same range.
        count: how many there may be.

    Example:
        >>> import numpy as np
        >>> is_any_of(np.array([2, -1, 0]), np.array([2, -1, 2]), 4).tolist()
        [True, True, False]
    """
    table = np.zeros(count, np.bool_)
    table[numbers] = True
    return np.asarray(table[column])


def occurring(column: Array) -> list[int]:
    """Return the distinct numbers of a column of integers, ascending; quickly where equal ones stand together.

    Example:
        >>> import numpy as np
        >>> occurring(np.array([3, 3, -1, -1, 3]))
        [-1, 3]
    """
    changes = np.flatnonzero(column[1:] != column[:-1]) + 1
    return sorted(set(column[:1].tolist()) | set(column[changes].tolist()))


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
