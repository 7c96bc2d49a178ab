"""Types of arrays, and what numpy does slowly: the order of whole numbers, which of them occur, texts by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas.api.extensions import ExtensionArray

__all__ = [
    "Array", "Ints", "Mask", "coded", "distinct", "in_runs", "inverse_of", "joined", "looked_up", "marked", "occurring",
    "run_starts", "spread", "stable_order", "sums_by", "texts_of",
]  # fmt: skip

Array: TypeAlias = npt.NDArray[Any]
"""An array of any type."""
Ints: TypeAlias = npt.NDArray[np.int64]
"""An array of 64-bit integers."""
Mask: TypeAlias = npt.NDArray[np.bool_]
"""An array of flags."""


def marked(rows: Array | Sequence[int], count: int) -> Mask:
    """Return a mask of length `count`, True at some rows.

    Example:
        >>> marked([0, 2], 3).tolist()
        [True, False, True]
    """
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def inverse_of(numbers: Array | Sequence[int], count: int) -> Ints:
    """Return, for 0 up to `count`, the place of each number in a list of different ones; -1 for those not in it.

    Example:
        >>> inverse_of([2, 0], 3).tolist()
        [1, -1, 0]
    """
    places = np.full(count, -1, np.int64)
    places[numbers] = np.arange(len(numbers))
    return places


def stable_order(keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the positions of the keys in ascending order of these, of equal ones in the order they have.

    Key and position are put into one number if both fit, and those are sorted. None of the keys is negative.

    Example:
        >>> stable_order(np.array([5, 2, 5, 1])).tolist()
        [3, 1, 0, 2]
    """
    place = max(0, len(keys) - 1).bit_length()
    if not len(keys) or int(keys.max()).bit_length() + place >= np.iinfo(np.int64).bits:
        return np.argsort(keys, kind="stable")
    both = np.left_shift(keys, place, dtype=np.int64)
    both |= np.arange(len(keys))
    both.sort()
    both &= (1 << place) - 1
    return both


_MAX_SPARSE = 4
"""How many times as many numbers as rows a table of all possible ones may have. Chosen: it is faster than sorting then.
Doubled, twice the memory; it changes times only."""


def coded(*columns: Array) -> npt.NDArray[np.int64]:
    """Return a number per row, 0 and up: two rows have the same one if and only if all their columns are equal.

    The numbers are in the order of the columns' values, the first column first; none is left out. The columns are
    integers of equal length.

    Example:
        >>> coded(np.array([5, 2, 5, 5]), np.array([1, 1, 0, 1])).tolist()
        [2, 0, 1, 2]
    """
    code, dense = np.zeros(len(columns[0]), np.int64), True
    for column in columns if len(code) else ():
        low = int(column.min())
        wide = int(column.max()) - low + 1
        if int(code.max()) >= np.iinfo(np.int64).max // wide:  # code and column do not fit into one number
            code = np.unique(code, return_inverse=True)[1]
            distinct_values, place = np.unique(column, return_inverse=True)
            code = code * len(distinct_values) + place
        else:
            code = code * wide + (column.astype(np.int64) - low)
        most = int(code.max()) + 1
        dense = most <= _MAX_SPARSE * len(code)
        if dense:  # without those between them that do not occur
            code = (np.cumsum(marked(code, most)) - 1)[code]
    return code if dense else np.unique(code, return_inverse=True)[1].astype(np.int64)


def run_starts(*columns: Array) -> npt.NDArray[np.int64]:
    """Return where runs begin, ascending: rows that follow each other and are equal in all columns are one run.

    Example:
        >>> run_starts(np.array([7, 7, 7, 1]), np.array([0, 0, 5, 5])).tolist()
        [0, 2, 3]
    """
    changes = np.ones(len(columns[0]), np.bool_)
    changes[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(changes)


def distinct(numbers: Array, count: int) -> npt.NDArray[np.int64]:
    """Return the distinct numbers, ascending, of numbers from 0 up to `count`, which itself does not occur.

    Example:
        >>> distinct(np.array([3, 1, 3]), 4).tolist()
        [1, 3]
    """
    return np.flatnonzero(marked(numbers, count))


def occurring(column: Array) -> list[int]:
    """Return the distinct numbers of a column of integers, ascending; quickly where equal ones stand together.

    Example:
        >>> occurring(np.array([3, 3, -1, -1, 3]))
        [-1, 3]
    """
    changes = np.flatnonzero(column[1:] != column[:-1]) + 1
    return sorted(set(column[:1].tolist()) | set(column[changes].tolist()))


def joined(parts: Iterable[Sequence[Array]], width: int) -> list[Ints]:
    """Return the columns of all parts, one part after the other.

    Example:
        >>> [column.tolist() for column in joined([([1], [2]), ([3], [4])], 2)], joined([], 1)[0].tolist()
        ([[1, 3], [2, 4]], [])
    """
    columns = list(zip(*parts, strict=True)) or [()] * width
    return [np.concatenate([np.zeros(0, np.int64), *column]) for column in columns]


def spread(low: Array, high: Array) -> tuple[Array, Array]:
    """Return (i of each number, numbers) of all ranges low[i]:high[i], one range after the other.

    Example:
        >>> owner, number = spread(np.array([5, 8]), np.array([7, 9]))
        >>> owner.tolist(), number.tolist()
        ([0, 0, 1], [5, 6, 8])
    """
    count = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(low)), count)
    return owner, np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + low[owner]


def looked_up(keys: Array, values: Array, wanted: Array, missing: int = -1) -> Array:
    """Return the value of each wanted key, `missing` for keys that are not there; of a repeated key the first value.

    The keys ascend.

    Example:
        >>> looked_up(np.array([2, 5]), np.array([20, 50]), np.array([5, 3])).tolist()
        [50, -1]
    """
    if not len(keys):
        return np.full(len(wanted), missing, values.dtype)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], np.array(missing).astype(values.dtype))


def sums_by(key: Array, value: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return (the distinct keys, ascending; the exact sum of the values of each), for integers.

    Example:
        >>> [column.tolist() for column in sums_by(np.array([7, 2, 7]), np.array([1, 5, 3]))]
        [[2, 7], [5, 4]]
    """
    if not len(key):
        return key, np.zeros(0, np.int64)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = run_starts(ordered)
    return ordered[first], np.add.reduceat(value[order].astype(np.int64, copy=False), first)


def in_runs(numbers: Array | Sequence[int], least: int = 3) -> list[str]:
    """Return numbers as texts, those of which `least` or more follow each other as a range.

    Example:
        >>> in_runs([4, 5, 6, 8, 9]), in_runs([8, 9], least=2)
        (['4-6', '8', '9'], ['8-9'])
    """
    texts: list[str] = []
    for run in np.split(np.asarray(numbers, np.int64), np.flatnonzero(np.diff(numbers) != 1) + 1):
        texts += [f"{run[0]}-{run[-1]}"] if len(run) >= least else map(str, run.tolist())
    return texts


def texts_of(texts: Sequence[str], numbers: npt.ArrayLike) -> ExtensionArray:
    """Return the texts of some numbers as a pandas column of type ``str``; the empty text for -1.

    Example:
        >>> texts_of(("a", "b"), [1, -1, 1]).tolist()
        ['b', '', 'b']
    """
    import pandas as pd

    wanted = np.asarray(numbers, np.int64)
    wanted = np.where(wanted >= 0, wanted, len(texts))
    used = distinct(wanted, len(texts) + 1)
    place = inverse_of(used, len(texts) + 1)
    few = pd.array([texts[number] if number < len(texts) else "" for number in used.tolist()], dtype="str")
    return few.take(place[wanted])
