"""What decoding fills: tables that grow in place, and interners that number names and lanes."""

from __future__ import annotations

from array import array
from typing import Any, TypeVar

import numpy as np

from htagraph.core.arrays import Array
from htagraph.trace.columns import Lane
from htagraph.trace.events import BulkField

__all__ = ["TYPECODES", "GrowingTable", "Interner", "LaneInterner", "as_array", "extend", "label"]

K = TypeVar("K")
# type codes of the standard library's array, by dtype and by column
TYPECODES = {"int64": "q", "uint64": "Q", "float64": "d", "str": "i"}
_COLUMN_CODES = {"index": "i", "name": "i", "category": "i", "lane": "i", "start": "q", "duration": "q"}
_MAX_DIGITS = 20
"""Digits of an id: a 64-bit number has at most 20, so a longer text is a name. Doubling it would make numbers of such
names that int64 columns cannot hold."""


class Interner(dict[K, int]):
    """Numbers keys in the order in which they are first asked for."""

    def __missing__(self, key: K) -> int:
        self[key] = number = len(self)
        return number


class LaneInterner(Interner[tuple[Any, Any]]):
    """Numbers (pid, tid) pairs; ids written as text are the same lane as those written as numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes = Interner[Lane]()

    def __missing__(self, key: tuple[Any, Any]) -> int:
        self[key] = number = self.lanes[label(key[0]), label(key[1])]
        return number


def label(value: object) -> int | str:
    """Return a pid, tid or id as an integer if it is one, written as text or not, else as text."""
    if isinstance(value, int):
        return value
    text = str(value)
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS else text


class GrowingTable:
    """Columns of a table while it grows.

    The arrays grow in place. Keeping one small chunk per block instead would fragment the memory that the next blocks'
    objects need: files of gigabytes then take a third longer to decode.
    """

    def __init__(self) -> None:
        self.columns = {name: array(code) for name, code in _COLUMN_CODES.items()}
        self.args: dict[str, tuple[array[int], array[Any]]] = {}
        self.slips: list[tuple[str, int, Array]] = []

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return len(self.columns["index"])

    def add_times(self, column: str, padded: Array, unpadded: Array) -> None:
        """Append times (ns); if the unpadded reading of their fractions differs, remember the difference."""
        if padded is not unpadded and (slip := padded - unpadded).any():
            self.slips.append((column, len(self.columns[column]), slip))
        extend(self.columns[column], padded)

    def add_args(self, bulk: BulkField, rows: Array, values: Array) -> None:
        """Append one argument's values for some rows; a column that no row has is not made."""
        if not len(rows):
            return
        if bulk.column.name not in self.args:
            self.args[bulk.column.name] = array("i"), array(TYPECODES[bulk.column.dtype])
        for grown, chunk in zip(self.args[bulk.column.name], (rows, values), strict=True):
            extend(grown, chunk)

    def keep(self, rows: Array) -> None:
        """Keep the rows where `rows` is True only."""
        position = np.cumsum(rows, dtype=np.int64) - rows
        for name, grown in self.columns.items():
            self.columns[name] = _array(grown.typecode, as_array(grown)[rows])
        for name, (of, values) in self.args.items():
            stays = rows[as_array(of)]
            moved = position[as_array(of)[stays]].astype(np.int32)
            self.args[name] = _array("i", moved), _array(values.typecode, as_array(values)[stays])
        self.slips = [
            (column, int(position[first]), slip[rows[first : first + len(slip)]]) for column, first, slip in self.slips
        ]

    def column(self, name: str, *, unpadded: bool = False) -> Array:
        """Return a column; with `unpadded`, its times are those of the unpadded reading."""
        values = as_array(self.columns[name])
        for column, first, slip in self.slips if unpadded else ():
            if column == name:
                values[first : first + len(slip)] -= slip
        return values


def extend(grown: array[Any], chunk: Array) -> None:
    """Append a numpy array of the same type."""
    grown.frombytes(chunk.view(np.uint8).data)


def _array(code: str, values: Array) -> array[Any]:
    out = array(code)
    extend(out, values)
    return out


def as_array(grown: array[Any]) -> Array:
    """Return an array as a numpy array that shares its memory."""
    return np.frombuffer(grown, dtype=grown.typecode) if len(grown) else np.zeros(0, dtype=grown.typecode)
