"""Rows of numbers and pieces of text → one text, by a compiled pass: what is written of many events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit
from htagraph.output.export.rows import SEPARATOR, Rows

__all__ = [
    "INTEGER",
    "MICROSECONDS",
    "NO_NUMBER",
    "NO_TEXT",
    "SEPARATOR",
    "SPAN",
    "TEXT",
    "Column",
    "Rows",
    "row_texts",
    "writable",
]


TEXT: Final = 0
"""Kind of a column whose values are positions in the list of texts, or `NO_TEXT`."""
SPAN: Final = 1
"""Kind of a column whose values are spans of the source: start · 2³² + length."""
MICROSECONDS: Final = 2
"""Kind of a column whose values are times, ns, to be written as the µs of a trace file."""
INTEGER: Final = 3
"""Kind of a column whose values are whole numbers, written as they are."""
NO_TEXT: Final = -1
"""Value of a `TEXT` column in a row that has no text there."""
NO_NUMBER: Final = -(2**63)
"""Value of a column of times or whole numbers in a row that has none there."""
_NUMBER_BYTES: Final = 24
"""Bytes that a number takes at most: 19 digits, a sign, a point and a zero before it."""


class Column(NamedTuple):
    """What all rows have at one place."""

    kind: int
    values: Array | int
    """One value per row, or one for all rows."""


def row_texts(columns: Sequence[Column], count: int, texts: Sequence[bytes], source: Array | None = None) -> Rows:
    r"""Return the text of each row.

    Args:
        columns: what stands in each row, from left to right.
        count: the number of rows.
        texts: what `TEXT` columns refer to.
        source: the bytes that `SPAN` columns refer to.

    Example:
        >>> columns = Column(TEXT, 0), Column(MICROSECONDS, np.array([1_500, 2_000, -7]))
        >>> bytes(row_texts(columns, 3, [b"at "]).joined)
        b'at 1.500,\nat 2,\nat -0.007'
    """
    values = np.empty((count, len(columns) + 1), np.int64)
    for at, column in enumerate(columns):
        values[:, at] = column.values
    values[:, -1] = len(texts)
    kinds = np.array([*(column.kind for column in columns), TEXT], np.int64)
    texts = [*texts, SEPARATOR]
    bounds = np.concatenate(([0], np.cumsum([len(text) for text in texts], dtype=np.int64)))
    size = sum(_size(kind, values[:, at], bounds) for at, kind in enumerate(kinds.tolist()))
    out, starts = np.empty(size, np.uint8), np.zeros(count + 1, np.int64)
    known = np.frombuffer(b"".join(texts), np.uint8)
    _fill(kinds, values, (known, bounds), writable(np.empty(0, np.uint8) if source is None else source), out, starts)
    return Rows(out, starts)


def writable(text: Array) -> Array:
    """Return a text that could be written, copied if it could not: passes are compiled anew for every kind of array."""
    return text if text.flags.writeable else text.copy()


def _size(kind: int, values: Array, bounds: Array) -> int:
    """Return how many bytes a column takes at most."""
    if kind == TEXT:
        return int(np.diff(bounds)[values[values >= 0]].sum())
    if kind == SPAN:
        return int((values & (2**32 - 1)).sum())
    return _NUMBER_BYTES * len(values)


@njit(cache=True, nogil=True)
def _fill(kinds: Array, values: Array, texts: tuple[Array, Array], source: Array, out: Array, starts: Array) -> None:
    at = 0
    for row in range(len(values)):
        for column in range(len(kinds)):
            kind, value = kinds[column], values[row, column]
            if kind == TEXT:
                if value >= 0:
                    first, last = texts[1][value], texts[1][value + 1]
                    out[at : at + last - first] = texts[0][first:last]
                    at += last - first
            elif kind == SPAN:
                first, length = value >> 32, value & 0xFFFF_FFFF
                out[at : at + length] = source[first : first + length]
                at += length
            elif value != NO_NUMBER:
                if value < 0:
                    out[at] = 45  # a minus
                    at += 1
                at = _put_number(out, at, abs(value), 1000 if kind == MICROSECONDS else 1)
        starts[row + 1] = at


@njit(nogil=True)
def _put_number(out: Array, at: int, number: int, parts: int) -> int:
    """Write a number that is not negative, given in thousandths or as it is; return the position behind it."""
    thousandths = number % parts
    whole, digits, rest = number // parts, 1, 10
    while digits < 19 and whole >= rest:
        digits, rest = digits + 1, rest * 10
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = 48 + whole % 10  # a digit
        whole //= 10
    at += digits
    if thousandths:
        out[at], out[at + 1] = 46, 48 + thousandths // 100  # a point, a digit
        out[at + 2], out[at + 3] = 48 + thousandths // 10 % 10, 48 + thousandths % 10
        at += 4
    return at
