"""Keyed random draws: each is a pure function of its key, so that a changed parameter moves no other draw."""

from typing import Final

import numpy as np
import numpy.typing as npt

Uint = npt.NDArray[np.uint64]
Float = npt.NDArray[np.float64]

_MASK: Final = int(np.iinfo(np.uint64).max)
# the constants of splitmix64 (Steele and others, 2014): the golden ratio in 64 bits, and two multipliers
GOLDEN, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# mean and standard deviation of the sum of four uniform 16-bit numbers
_FIELD_MEAN, _FIELD_DEVIATION = 4 * 65535 / 2, (4 * (65536.0**2 - 1) / 12) ** 0.5


def mix(*parts: int) -> int:
    """Return a 64-bit hash of integers (splitmix64, folded left to right).

    Example:
        >>> mix(1, 2) == mix(1, 2), mix(1, 2) == mix(2, 1)
        (True, False)
    """
    state = 0
    for part in parts:
        state = (state + GOLDEN + (part & _MASK)) & _MASK
        state = ((state ^ (state >> 30)) * _M1) & _MASK
        state = ((state ^ (state >> 27)) * _M2) & _MASK
        state ^= state >> 31
    return state


def normal(base: Uint | int, keys: Uint) -> Float:
    """Return one approximately normal number per key, within ±3.47: the sum of four uniform numbers, standardized.

    `base` (a scalar, or one per key) chooses the stream of randomness. Sums and products only, so that every machine
    gives the same numbers.
    """
    state = keys + (np.uint64(base) if isinstance(base, int) else base) + np.uint64(GOLDEN)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_M1)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_M2)
    fields = (state ^ (state >> np.uint64(31))).view(np.uint16).reshape(len(keys), 4).sum(axis=1, dtype=np.int64)
    standard: Float = (fields - _FIELD_MEAN) / _FIELD_DEVIATION
    return standard


def uniform(base: int, key: int) -> float:
    """Return one number in [0, 1) for a key."""
    return (mix(base, key) >> 11) / (1 << 53)  # the upper 53 bits: those of a float64
