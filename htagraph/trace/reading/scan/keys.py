"""Tables of the keys that the compiled scan looks for: perfect hash tables, laid out as one array of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit
from htagraph.trace.reading.scan.memory import Int, compiled, word

__all__ = ["MAX_KEYS", "UNKNOWN", "key_kind", "key_number", "key_table"]

UNKNOWN = -1
"""Number of a key that is not in the table."""
MAX_KEYS = 64
"""Keys of a table: those of an event that were seen are bits of one word, so it cannot be doubled."""
_PLACES = 256
"""Places by hash, as many as a byte has values. Chosen: 40 keys find places of their own within some tries; doubling it
costs 2 KB."""
_KEY_BYTES = 48
"""Bytes of the longest key, a multiple of 8. Chosen: the longest has 33; doubling it costs 48 bytes per key."""
_MAX_TRIES = 100_000
"""Factors of the hash that are tried. Chosen: 40 keys need about 25; doubling it changes nothing."""
_ENTRY_BYTES = 16 + _KEY_BYTES  # length, kind, text
_ENTRIES = 8 * (1 + _PLACES)  # bytes of the factor and the places, which are before the entries
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2^64 divided by the golden ratio; another odd number of many bits would do


def key_table(keys: Sequence[tuple[str, int]]) -> npt.NDArray[np.int64]:
    """Return the table of (key, kind of its values); a key's number is its position.

    Example:
        >>> key_table([("stream", 0), ("device", 0)]).nbytes
        2184
    """
    texts = [key.encode() for key, _ in keys]
    if len(keys) > MAX_KEYS or not all(0 < len(text) <= _KEY_BYTES for text in texts):
        msg = f"a table takes {MAX_KEYS} keys of 1 to {_KEY_BYTES} bytes"
        raise ValueError(msg)
    codes = []
    for text in texts:
        around = np.frombuffer(text.rjust(_KEY_BYTES, b"\0") + bytes(8), np.uint8)
        start = around.ctypes.data + _KEY_BYTES - len(text)
        codes.append(_code(start, start + len(text)))
    random = np.random.default_rng(0)
    for _ in range(_MAX_TRIES):
        factor = random.integers(2**63) | 1
        places = ((np.array(codes, np.uint64) * np.uint64(factor)) >> np.uint64(56)).astype(np.int64)
        if len(set(places.tolist())) == len(keys):
            break
    else:
        msg = "two keys share their length and their first and last eight bytes"
        raise ValueError(msg)
    numbers = np.full(_PLACES, UNKNOWN, np.int64)
    numbers[places] = np.arange(len(keys))
    entries = [
        np.frombuffer(np.array([len(text), kind], np.int64).tobytes() + text.ljust(_KEY_BYTES, b"\0"), np.int64)
        for text, (_, kind) in zip(texts, keys, strict=True)
    ]
    return np.concatenate([np.array([factor], np.int64), numbers, *entries])


@njit(cache=True, nogil=True)
def _code(start: Int, stop: Int) -> Int:
    """Return a key's hash before it is multiplied."""
    length = stop - start
    first = word(start)
    if length < 8:
        return first & _low_bytes(length)
    return first ^ (word(stop - 8) * _MIX) ^ np.uint64(length)


@compiled
def _low_bytes(count: Int) -> Int:
    """Return a mask of the first bytes of a word; `count` is less than 8."""
    return (np.uint64(1) << np.uint64(8 * count)) - np.uint64(1)


@compiled
def key_number(start: Int, stop: Int, table: Int) -> Int:
    """Return the number of the key between two addresses in the table at an address, or `UNKNOWN`."""
    length = stop - start
    place = (_code(start, stop) * word(table)) >> np.uint64(56)
    key = np.int64(word(table + 8 + 8 * np.int64(place)))
    if key == UNKNOWN or np.int64(word(_entry(table, key))) != length:
        return UNKNOWN
    known = _entry(table, key) + 16
    while start + 8 <= stop:
        if word(start) != word(known):
            return UNKNOWN
        start, known = start + 8, known + 8
    return key if start == stop or word(start) & _low_bytes(stop - start) == word(known) else UNKNOWN


@compiled
def key_kind(key: Int, table: Int) -> Int:
    """Return the kind of a key's values."""
    return np.int64(word(_entry(table, key) + 8))


@compiled
def _entry(table: Int, key: Int) -> Int:
    return table + _ENTRIES + key * _ENTRY_BYTES
