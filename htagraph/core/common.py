"""What two ascending columns of numbers have in common. Compiled by numba, kept on the disk."""

from __future__ import annotations

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit

__all__ = ["sum_in_common"]


def sum_in_common(some: Array, values: Array, other: Array) -> int:
    """Return the sum of the values of those numbers that are among others too.

    Args:
        some: distinct numbers, ascending.
        values: the value of each.
        other: distinct numbers, ascending.

    Example:
        >>> import numpy as np
        >>> sum_in_common(np.array([2, 4, 7]), np.array([10, 20, 30]), np.array([1, 2, 7, 9]))
        40
    """
    return int(_sum_in_common(*(for_reading(each, "int64") for each in (some, values, other))))


@njit(cache=True, nogil=True)
def _sum_in_common(some: Array, values: Array, other: Array) -> int:
    at = total = 0
    for i in range(len(some)):
        while at < len(other) and other[at] < some[i]:
            at += 1
        if at == len(other):
            break
        if other[at] == some[i]:
            total += values[i]
    return total
