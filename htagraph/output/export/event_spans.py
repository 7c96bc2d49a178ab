"""Where the texts of an event's values are: by a compiled pass over events that the compiled scan has understood."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit
from htagraph.trace.kineto.scan.events import OFFSET, UNKNOWN, key_number, key_table
from htagraph.trace.kineto.scan.grammar import blank, byte, compiled, key_end, skip_value, value_behind, word
from htagraph.trace.kineto.scan.scanner import Block

__all__ = ["ARGS", "CATEGORY", "INSIDE", "NAME", "PLAIN", "SCOPE", "event_spans"]


NAME, CATEGORY, ARGS, SCOPE, INSIDE, PLAIN = range(6)
"""Columns: spans of the values (start · 2³² + length, 0 where absent), that between the brackets of the arguments, and
1 for an event that can be written with these spans and without any other text of it."""
_SPANS: Final = ("name", "cat", "args", "s")  # in the order of the columns
_KEYS: Final = (*_SPANS, "ph", "pid", "tid", "ts", "dur")
_COUNT: Final = len(_SPANS)
_QUOTE, _COMMA, _OPEN, _CLOSE, _BACKSLASH, _SPACE = b'",{}\\ '
_EACH: Final = 0x0101_0101_0101_0101
_ONES, _TOPS, _BACKSLASHES = (np.uint64(each * _EACH) for each in (1, 0x80, _BACKSLASH))


def event_spans(block: Block, which: Array) -> npt.NDArray[np.int64]:
    """Return a row per event: `NAME`, `CATEGORY`, `ARGS`, `SCOPE`, `INSIDE`, `PLAIN`.

    An event is plain if it has no other keys than these and its place and times, a text for a name, and no backslash:
    one at the end of a text needs repair, see `trace_writer`.

    Args:
        block: the text of events, as scanned.
        which: positions of events in the block.
    """
    spans = np.zeros((len(which), PLAIN + 1), np.int64)
    _fill(block.text.ctypes.data, np.ascontiguousarray(block.rows[which, OFFSET]), _table().ctypes.data, spans)
    return spans


@cache
def _table() -> Array:
    return key_table([(key, 0) for key in _KEYS])


@njit(cache=True, nogil=True)
def _fill(base: int, offsets: Array, table: int, spans: Array) -> None:
    for row in range(len(offsets)):
        at, plain, more = blank(base + offsets[row] + 1), 1, True
        while more and byte(at) == _QUOTE:
            start, at = at + 1, key_end(at)
            key = key_number(start, at - 1, table)
            at = value_behind(at)
            stop = skip_value(at)
            if key == UNKNOWN:
                plain = 0
            elif key < _COUNT:
                spans[row, key] = ((at - base) << 32) | (stop - at)
                spans[row, INSIDE] = _inside(base, at, stop) if key == ARGS else spans[row, INSIDE]
            at = blank(stop)
            more = byte(at) == _COMMA
            at = blank(at + 1) if more else at
        for key in range(_COUNT):
            first = base + (spans[row, key] >> 32)
            plain &= not _has_backslash(first, first + (spans[row, key] & 0xFFFF_FFFF))
        spans[row, PLAIN] = plain & (spans[row, NAME] != 0) & (byte(base + (spans[row, NAME] >> 32)) == _QUOTE)


@compiled
def _inside(base: int, at: int, stop: int) -> int:
    """Return the span between the brackets of an object, without the white space at its ends; 0 for no object."""
    if byte(at) != _OPEN:
        return 0
    first, last = blank(at + 1), stop - 1
    while last > first and byte(last - 1) <= _SPACE:
        last -= 1
    return ((first - base) << 32) | (max(last - first, 0))


@compiled
def _has_backslash(at: int, stop: int) -> bool:
    while at < stop:
        marks = word(at) ^ _BACKSLASHES
        marks = (marks - _ONES) & ~marks & _TOPS
        if marks:  # exact for the lowest one
            while byte(at) != _BACKSLASH:
                at += 1
            return at < stop
        at += 8
    return False
