"""Numbers for texts: each distinct one is kept once. A compiled hash table over spans of a text.

The hash is keyed by random numbers, so that no file can be made whose texts collide.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit
from htagraph.core.counting import FIRST_SLOTS
from htagraph.trace.kineto.scan.events import NO_SPAN
from htagraph.trace.kineto.scan.grammar import Int, compiled, put, word

__all__ = ["NO_TOKEN", "TokenTable"]


NO_TOKEN = NO_SPAN
"""Number of an absent text."""
_TEXT_BYTES = 256
"""Bytes of a text for which a new table has room. Chosen: long names; doubling it costs 1 MB per file."""


class _Table(NamedTuple):
    places: Array
    """Number of a text by hash, 0 where there is none; a power of two of places, at most half of them taken."""
    codes: Array
    """Hash by number."""
    spans: Array
    """Start and length in `kept` by number."""
    kept: Array
    """Bytes of the texts, each filled up with zeros to whole words."""
    used: Array
    """Number of texts (with the absent one), number of bytes."""


class TokenTable:
    """Texts seen so far; numbers begin at 1."""

    def __init__(self) -> None:
        self._secret = np.array([secrets.randbits(64), secrets.randbits(64) | 1], np.uint64)
        self._table = _empty(FIRST_SLOTS, _TEXT_BYTES * FIRST_SLOTS)

    def __len__(self) -> int:
        """Number of texts, with the absent one."""
        return int(self._table.used[0])

    def numbers(self, base: int, spans: Array) -> Array:
        """Return the number of each span (start · 2³² + length, 0 where absent) of the text at address `base`."""
        numbers = np.empty(len(spans), np.int32)
        done = 0
        while done < len(spans):
            done = _number_spans(base, spans, done, self._secret, self._table, numbers)
            if done < len(spans):
                self._table = _grown(self._table, int(spans[done]) & (2**32 - 1))
        return numbers

    def text(self, number: int) -> bytes:
        """Return the text that has a number."""
        start, length = self._table.spans[number].tolist()
        return self._table.kept[start : start + length].tobytes()


def _empty(tokens: int, size: int) -> _Table:
    return _Table(
        np.zeros(2 * tokens, np.int32), np.zeros(tokens, np.uint64), np.zeros((tokens, 2), np.int64),
        np.zeros(size, np.uint8), np.array([1, 0], np.int64),
    )  # fmt: skip


def _grown(old: _Table, need: int) -> _Table:
    """Return a table with the same texts and more room."""
    count, size = old.used.tolist()
    new = _empty(2 * len(old.codes), 2 * len(old.kept) + need)
    for whole, part in zip(new[1:4], old[1:4], strict=True):
        whole[: len(part)] = part
    new.used[:] = count, size
    _place_again(new.places, new.codes, count)
    return new


@njit(cache=True, nogil=True)
def _place_again(places: Array, codes: Array, count: Int) -> None:
    last = np.uint64(len(places) - 1)
    for number in range(1, count):
        place = codes[number] & last
        while places[place]:
            place = (place + np.uint64(1)) & last
        places[place] = number


@njit(cache=True, nogil=True)
def _number_spans(base: Int, spans: Array, done: Int, secret: Array, table: _Table, numbers: Array) -> Int:
    """Fill `numbers` from position `done` on; return how far the table had room."""
    kept, last = table.kept.ctypes.data, np.uint64(len(table.places) - 1)
    for i in range(done, len(spans)):
        start, length = base + (spans[i] >> 32), spans[i] & 0xFFFF_FFFF
        if length == 0:
            numbers[i] = NO_TOKEN
            continue
        code = _code(start, length, secret[0], secret[1])
        place = code & last
        number = table.places[place]
        while number and not (
            table.codes[number] == code
            and table.spans[number, 1] == length
            and _same(start, length, kept + table.spans[number, 0])
        ):
            place = (place + np.uint64(1)) & last
            number = table.places[place]
        if number == 0:
            number, size = table.used
            if number == len(table.codes) or size + length + 8 > len(table.kept):
                return i
            table.places[place], table.codes[number] = number, code
            table.spans[number, 0], table.spans[number, 1] = size, length
            table.used[0], table.used[1] = number + 1, size + _keep(start, length, kept + size)
        numbers[i] = number
    return len(spans)


@compiled
def _code(start: Int, length: Int, seed: Int, factor: Int) -> Int:
    code = (seed ^ np.uint64(length)) * factor
    for at in range(start, start + length - 7, 8):
        code = (code ^ word(at)) * factor
        code ^= code >> np.uint64(32)
    code = (code ^ _rest(start, length)) * factor
    return code ^ (code >> np.uint64(32))


@compiled
def _rest(start: Int, length: Int) -> Int:
    """Return the bytes behind the last whole word of a text, as a word; 0 if there are none."""
    bits = np.uint64(8 * (length & 7))
    return word(start + (length & ~7)) & ((np.uint64(1) << bits) - np.uint64(1))


@compiled
def _same(start: Int, length: Int, known: Int) -> bool:
    for at in range(0, length - 7, 8):
        if word(start + at) != word(known + at):
            return False
    return _rest(start, length) == _rest(known, length)


@compiled
def _keep(start: Int, length: Int, to: Int) -> Int:
    """Copy a text, filled up with zeros to whole words; return the bytes taken."""
    for at in range(0, length - 7, 8):
        put(to + at, np.int64(word(start + at)))
    put(to + (length & ~7), np.int64(_rest(start, length)))
    return (length & ~7) + 8
