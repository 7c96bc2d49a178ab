"""Many slices, or many values of one counter, as columns of numbers: what writers of every format make events of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.output.export.trace_writer import MICROSECONDS, NO_TEXT, SPAN, TEXT, Column, Rows, readable, row_texts

__all__ = ["BYTES", "COUNT", "GB_S", "Slices", "Values", "slice_rows", "value_rows"]


COUNT, GB_S, BYTES = "count", "GB/s", "bytes"
"""Units of counters."""


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of some tracks."""

    places: Sequence[tuple[int, int]]
    """Processes and tracks in them, by number."""
    texts: Sequence[str]
    """Names and categories, by number."""
    place: Array
    start: Array
    """ns since the base of what is written, ≥ 0."""
    duration: Array
    """ns; `NO_NUMBER` for instants."""
    name: Array
    category: Array
    """Position in `texts`, -1 for none."""
    args: Array
    """Arguments as JSON: spans of `source` (start · 2³² + length), 0 for none."""
    source: Array

    def __len__(self) -> int:
        return len(self.place)

    def rows(self, which: Array) -> Slices:
        """Return some of the slices, in that order."""
        columns = ("place", "start", "duration", "name", "category", "args")
        return replace(self, **{column: getattr(self, column)[which] for column in columns})


@dataclass(frozen=True, eq=False)
class Values:
    """Values of one counter of a process."""

    pid: int
    name: str
    series: str
    unit: str
    moment: Array
    """ns since the base of what is written, ≥ 0."""
    value: Array
    """Integers, or floats of which six decimals are written."""

    def __len__(self) -> int:
        return len(self.moment)


def slice_rows(slices: Slices) -> Rows:
    """Return slices as JSON of a trace file.

    Example:
        >>> columns = (np.array([each]) for each in (0, 1_500, 7, 0, 1, 0))
        >>> bytes(slice_rows(Slices([(1, 2)], ["a", "b"], *columns, np.zeros(0, np.uint8))).joined)
        b'{"ph":"X","pid":1,"tid":2,"name":"a","ts":1.500,"dur":0.007,"cat":"b"}'
    """
    encode = msgspec.json.encode
    pieces = [b',"name":', b',"ts":', b',"dur":', b',"cat":', b',"args":', b"}"]
    heads = [b'{"ph":"X","pid":%d,"tid":%d' % place for place in slices.places]
    texts = [*pieces, *heads, *(readable(encode(text)) for text in slices.texts)]
    first_name = len(pieces) + len(heads)
    category, has_args = slices.category, slices.args != 0
    columns = (
        Column(TEXT, len(pieces) + slices.place), Column(TEXT, 0), Column(TEXT, first_name + slices.name),
        Column(TEXT, 1), Column(MICROSECONDS, slices.start), Column(TEXT, 2), Column(MICROSECONDS, slices.duration),
        Column(TEXT, np.where(category < 0, NO_TEXT, 3)),
        Column(TEXT, np.where(category < 0, NO_TEXT, first_name + category)),
        Column(TEXT, np.where(has_args, 4, NO_TEXT)), Column(SPAN, slices.args), Column(TEXT, 5),
    )  # fmt: skip
    return row_texts(columns, len(slices), texts, slices.source)


def value_rows(values: Values) -> Rows:
    """Return a counter's values as JSON of a trace file.

    Example:
        >>> bytes(value_rows(Values(7, "queue length", "stream 1", COUNT, np.array([2_000]), np.array([3]))).joined)
        b'{"ph":"C","pid":7,"name":"queue length","ts":2,"args":{"stream 1":3}}'
    """
    encode = msgspec.json.encode
    head = b'{"ph":"C","pid":%d,"name":%b,"ts":' % (values.pid, readable(encode(values.name)))
    between = b',"args":{%b:' % readable(encode(values.series))
    known, which = np.unique(values.value, return_inverse=True)
    form = "%d" if np.issubdtype(known.dtype, np.integer) else "%.6f"
    texts = [head, between, b"}}", *((form % each).encode() for each in known.tolist())]
    columns = (
        Column(TEXT, 0), Column(MICROSECONDS, values.moment), Column(TEXT, 1), Column(TEXT, 3 + which), Column(TEXT, 2),
    )  # fmt: skip
    return row_texts(columns, len(values), texts)
