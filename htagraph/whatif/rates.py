"""A fixed part and a rate: how long work takes where the amount of work, or the rate at which it is done, changes.

`time = fixed + amount × rate`. The latency of a transfer and the floor of a kernel are fixed: half of the bytes, or
twice the bandwidth, halve the rest only. Each caller knows the fixed part: by the sizes that were recorded, by a line
through them, or by how full a device is (`by_fill`). How times grow is computed here alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array

__all__ = ["TILE", "Rated", "by_fill", "split"]

_FULL = 64
"""Warps that a multiprocessor holds at once. Source: CUDA C++ Programming Guide, compute capabilities 6.0 to 9.0 but
7.5, 8.6 and 8.9 (32 and 48). Doubled, kernels of one full wave gain a third less from half of the work."""
TILE = 128 * 128
"""Elements of the result that a block of threads computes, where the recording has no warps. Source: the usual tile of
cuBLAS and CUTLASS, whose tiles have 64 to 256 rows and columns. Doubled, half as many tiles, and small products lose
twice as much on a larger device."""


class Rated(NamedTuple):
    """Times in two parts, one entry per activity, in one unit."""

    fixed: Array
    """Time that stays whatever the amount is."""
    paced: Array
    """Time that the amount takes at its rate."""

    def at(self, amount: Array | float, fixed: Array | float = 1.0) -> Array:
        """Return the times of `amount` times as much work, and of a fixed part `fixed` times as long.

        A rate that is half as high counts as twice as much work.

        Example:
            >>> Rated(np.array([2.0]), np.array([6.0])).at(0.5).tolist()
            [5.0]
        """
        return np.asarray(self.fixed * fixed + self.paced * amount)


def split(time: Array, fixed: Array | float) -> Rated:
    """Return times with a fixed part, which is never below 0 and never above the time.

    Example:
        >>> split(np.array([8.0, 1.0]), 2.0).paced.tolist()
        [6.0, 0.0]
    """
    possible = np.clip(fixed, 0.0, np.maximum(time, 0.0))
    return Rated(np.asarray(possible, np.float64), np.asarray(time - possible, np.float64))


def by_fill(time: Array, warps: Array) -> Rated:
    """Return kernels' times, with the time of one warp alone as the fixed part: `time ∝ 1 + warps / 64`.

    While a multiprocessor has room, more warps wait for memory and for their own instructions beside each other; a full
    one does the work of 64 warps in as long again, and each further wave takes as long as the first.

    Args:
        time: of each kernel.
        warps: warps of the grid per multiprocessor; where it is not known (NaN), nothing is fixed.

    Example:
        >>> by_fill(np.array([10.0, 10.0, 10.0]), np.array([0.64, 64.0, np.nan])).at(2).round(1).tolist()
        [10.1, 15.0, 20.0]
    """
    return split(time, np.nan_to_num(np.divide(time, 1 + warps / _FULL)))
