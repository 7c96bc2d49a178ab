"""What decoding fills: tables that grow in place, and numbers for names and lanes."""

from __future__ import annotations

from array import array
from typing import Any, TypeVar

import numpy as np

from htagraph.trace.columns import Array, Lane
from htagraph.trace.events import BulkField

__all__ = ["TYPECODES", "GrowingTable", "Interner", "LaneInterner", "as_array", "extend", "label"]

K = TypeVar("K")
TYPECODES = {"int64": "q", "uint64": "Q", "float64": "d", "str": "i"}
_COLUMN_CODES = {"index": "i", "name": "i", "category": "i", "lane": "i", "start": "q", "duration": "q"}
_MOST_DIGITS = 20  # of a 64-bit number; a longer text is a name


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
    """Return a pid, tid or id as its number where it is one, written as text or not, else as text."""
    if isinstance(value, int):
        return value
    text = str(value)
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else text


class GrowingTable:
    """Columns of a table while it grows.

    Arrays that grow in place: many small chunks that outlive their block would scatter over the memory that the next
    blocks' objects need, and slow them down by a third on files of gigabytes.
    """

    def __init__(self) -> None:
        self.columns = {name: array(code) for name, code in _COLUMN_CODES.items()}
        self.args: dict[str, tuple[array[int], array[Any]]] = {}
        self.slips: list[tuple[str, int, Array]] = []

    @property
    def count(self) -> int:
        """Rows so far."""
        return len(self.columns["index"])

    def add_times(self, column: str, padded: Array, unpadded: Array) -> None:
        """Append times; where the two readings of their fractions differ, remember by how much."""
        if padded is not unpadded:
            self.slips.append((column, len(self.columns[column]), padded - unpadded))
        extend(self.columns[column], padded)

    def add_args(self, bulk: BulkField, rows: Array, values: Array) -> None:
        """Append the values that some rows have of one argument."""
        if bulk.column.name not in self.args:
            self.args[bulk.column.name] = array("i"), array(TYPECODES[bulk.column.dtype])
        for grown, chunk in zip(self.args[bulk.column.name], (rows, values), strict=True):
            extend(grown, chunk)

    def column(self, name: str, *, unpadded: bool = False) -> Array:
        """Return a column, its times read as unpadded if so decided."""
        values = as_array(self.columns[name])
        for column, first, slip in self.slips if unpadded else ():
            if column == name:
                values[first : first + len(slip)] -= slip
        return values


def extend(grown: array[Any], chunk: Array) -> None:
    """Append a chunk of the array's own type."""
    grown.frombytes(chunk.view(np.uint8).data)


def as_array(grown: array[Any]) -> Array:
    """Return the memory of an array as numpy sees it, without a copy."""
    return np.frombuffer(grown, dtype=grown.typecode) if len(grown) else np.zeros(0, dtype=grown.typecode)
