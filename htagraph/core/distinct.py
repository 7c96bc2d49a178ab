"""Which numbers occur: without sorting or hashing them, where their range is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array

__all__ = ["coded", "distinct", "is_any_of", "occurring", "sums_by"]


_MAX_SPARSE = 4
"""How many times as many numbers as rows a table of all possible ones may have. Chosen: it is faster than sorting then.
Doubled, twice the memory; it changes times only."""


def coded(*columns: Array) -> npt.NDArray[np.int64]:
    """Return a number per row, 0 and up: two rows have the same one if and only if all their columns are equal.

    The numbers are in the order of the columns' values, the first column first; none is left out.

    Args:
        *columns: integers, of equal length, at least one row.

    Example:
        >>> import numpy as np
        >>> coded(np.array([5, 2, 5, 5]), np.array([1, 1, 0, 1])).tolist()
        [2, 0, 1, 2]
    """
    code, dense = np.zeros(len(columns[0]), np.int64), True
    for column in columns:
        low = int(column.min())
        wide = int(column.max()) - low + 1
        if int(code.max()) >= np.iinfo(np.int64).max // wide:
            code = np.unique(code, return_inverse=True)[1]
        code, dense = _dense(code * wide + (column.astype(np.int64) - low))
    return code if dense else np.unique(code, return_inverse=True)[1].astype(np.int64)


def _dense(code: Array) -> tuple[Array, bool]:
    """Return (codes without those between them that do not occur, True); if that needs sorting, (codes, False)."""
    most = int(code.max()) + 1
    if most > _MAX_SPARSE * len(code):
        return code, False
    occurs = np.zeros(most, np.bool_)
    occurs[code] = True
    return (np.cumsum(occurs) - 1)[code], True


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
