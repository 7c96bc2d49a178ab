"""One compiled pass over the text of events: bytes → rows of numbers, without a Python object per event.

It understands what profilers write and declines the rest, which then goes through the general decoder. It may decline
anything, but what it accepts equals what the general decoder makes of the same text, field by field.

Names and other texts are handed on as spans: start · 2³² + length of a JSON value, a string with its quotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import Ints
from htagraph.core.compiled import njit
from htagraph.trace.kineto.scan.grammar import (
    DECIMAL,
    INTEGER,
    REFUSED,
    Int,
    blank,
    byte,
    compiled,
    float_of,
    key_end,
    number,
    put,
    skip_value,
    string_end,
    text_address,
    value_behind,
    with_padding,
    word,
)
from htagraph.trace.kineto.times import EXACT_FLOAT_US

__all__ = [
    "ARGUMENT_WIDTH", "CATEGORY", "DECLINED", "DURATION", "DURATION_ABSENT", "DURATION_SLIP", "DURATION_STYLE",
    "FIELDS", "FLAGS", "FLOAT", "GOLDEN", "ID", "ID_IS_NUMBER", "ID_IS_SPAN", "MAX_KEYS", "NAME", "NEEDS_EXACT",
    "NO_SPAN", "OFFSET", "PHASE", "PROCESS", "RAW", "ROW_WIDTH", "SCANNED", "SIGNED", "SPAN", "START", "START_ABSENT",
    "START_SLIP", "START_STYLE", "STOP", "STYLE_BITS", "TEXT", "THREAD", "UNKNOWN", "UNSIGNED", "key_kind",
    "key_number", "key_table", "scan_events",
]  # fmt: skip

Part: TypeAlias = tuple[Int, Int]

SCANNED, DECLINED, NEEDS_EXACT = range(3)
"""Results of a scan: done; text that is not understood; times too large for floats."""

(
    OFFSET, STOP, PHASE, NAME, CATEGORY, PROCESS, THREAD, START, DURATION, START_SLIP, DURATION_SLIP, ID, FLAGS,
) = range(13)  # fmt: skip
"""Columns of an event's row. Slips are what a time is too large by if its fraction lacks leading zeros, ns."""
ROW_WIDTH = FLAGS + 1
"""Number of columns of an event's row."""
ARGUMENT_WIDTH = 3
"""Columns of an argument's row: event, key, value. `SPAN` is added to the key if the value is a span of text."""
SPAN = 1 << 16
"""Added to the key of an argument whose value is a span of text, because it is not what its column holds."""
SIGNED, UNSIGNED, FLOAT, TEXT, RAW = range(5)
"""What the values of a key become: int64, uint64, the bits of a float64, spans of strings, spans of anything."""
START_ABSENT, DURATION_ABSENT, ID_IS_NUMBER, ID_IS_SPAN = 1, 2, 4, 8
"""Bits of an event's flags."""
START_STYLE, DURATION_STYLE, STYLE_BITS = 4, 7, 3
"""First bits of the flags that say what the fraction of a time shows, and their number: varied, decimal, trailing zero
(see `times.FractionStyle`)."""
NO_SPAN = 0
"""Span of what is absent, or of a category that is null."""

FIELDS = ("ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "args")
"""Keys of an event that are read, in the order of their numbers in its table of keys."""
_PH, _NAME, _CAT, _PID, _TID, _TS, _DUR, _ID, _ARGS = range(9)
_COLUMN_OF = np.array([PHASE, NAME, CATEGORY, PROCESS, THREAD, START, DURATION, ID])  # by number of the field
_TOO_LARGE = -1
"""An address that stands for a time that is too large for a float."""
_QUOTE, _COMMA, _OPEN, _CLOSE, _MINUS, _ZERO, _NINE, _LOWER_N, _SPACE, _DELETE, _BACKSLASH = b'",{}-09n \x7f\\'
_EXACT_US = np.uint64(EXACT_FLOAT_US)
_MAX_US = np.uint64(2**53)  # the general decoder may round whole µs beyond it
_ID_LIMIT = np.uint64(2**63)
_TENS = np.array([10**power for power in range(19)], np.uint64)
_NS_DIGITS = 3
"""Decimals of a time in µs that are whole ns."""


@njit(cache=True, nogil=True)
def scan_events(text: Part, keys: Part, rows: Part, args: Part, exact: Int) -> tuple[Int, Int, Int]:
    """Fill `rows` and `args` with events; return (result, number of events, number of arguments).

    Text, rows and args are each an address and a size (bytes, rows); `PADDING` follows the text. `keys` are addresses
    of the tables of the keys of events and of arguments, see `key_table`. `exact` is 1 to read times as decimals, 0 for
    floats.
    """
    start, row, argument = text[0], rows[0], args[0]
    at, end, event, used = blank(start), start + text[1], 0, 0
    while at < end:
        if byte(at) != _OPEN or event == rows[1] or used + MAX_KEYS > args[1]:
            return DECLINED, event, used
        at, more = _scan_event(start, at, exact, keys, row, argument)
        if at <= 0:
            return NEEDS_EXACT if at == _TOO_LARGE else DECLINED, event, used
        for place in range(more):
            put(argument + 8 * ARGUMENT_WIDTH * place, event)
        event, used = event + 1, used + more
        row, argument = row + 8 * ROW_WIDTH, argument + 8 * ARGUMENT_WIDTH * more
        at = blank(at)
        if byte(at) == _COMMA:
            at = blank(at + 1)
            if at >= end:  # a comma, and no event behind it
                return DECLINED, event, used
        elif at < end:
            return DECLINED, event, used
    return SCANNED, event, used


@compiled
def _scan_event(base: Int, at: Int, exact: Int, keys: Part, row: Int, argument: Int) -> Part:
    """Fill a row and its arguments; return (address behind the event or a result that is no address, arguments)."""
    for column in range(ROW_WIDTH):
        put(row + 8 * column, 0)
    put(row + 8 * OFFSET, at - base)
    put(row + 8 * FLAGS, START_ABSENT | DURATION_ABSENT)
    used = 0
    at = blank(at + 1)
    more = byte(at) != _CLOSE
    while more:
        start, at = at + 1, key_end(at)
        if at == REFUSED:
            return REFUSED, used
        key = key_number(start, at - 1, keys[0])
        at = value_behind(at)
        if at == REFUSED:
            return REFUSED, used
        if key == _ARGS:
            at, used = _scan_args(base, at, keys[1], argument)
        else:
            at = _scan_field(base, at, key, exact, row)
        if at <= 0:
            return at, used
        at = blank(at)
        more = byte(at) == _COMMA
        if more:
            at = blank(at + 1)
    put(row + 8 * STOP, at + 1 - base)
    return at + 1 if byte(at) == _CLOSE else REFUSED, used


@compiled
def _scan_field(base: Int, at: Int, key: Int, exact: Int, row: Int) -> Int:
    """Set what a field says in the row; return the address behind its value, or a result that is no address."""
    if key == UNKNOWN:
        return skip_value(at)
    if key in (_TS, _DUR):
        return _scan_time(at, exact, row, np.int64(key == _DUR))
    if key == _ID:
        return _scan_id(base, at, row)
    if key == _PH:
        put(row + 8 * PHASE, byte(at + 1))
        return _phase_end(at)
    is_null = key == _CAT and byte(at) == _LOWER_N
    stop = _label_end(at) if key in (_PID, _TID) else skip_value(at) if is_null else string_end(at)
    put(row + 8 * _COLUMN_OF[key], NO_SPAN if is_null else _span(base, at, stop))
    return stop


@compiled
def _span(base: Int, at: Int, stop: Int) -> Int:
    return ((at - base) << 32) | (stop - at)


@compiled
def _label_end(at: Int) -> Int:
    """Return the address behind a process or thread: a string, a number or null."""
    first = byte(at)
    known = first in (_QUOTE, _LOWER_N, _MINUS) or _ZERO <= first <= _NINE
    return skip_value(at) if known else REFUSED


@compiled
def _phase_end(at: Int) -> Int:
    """Return the address behind a phase of one letter."""
    letter = byte(at + 1)
    if byte(at) != _QUOTE or byte(at + 2) != _QUOTE or letter == _BACKSLASH or not _SPACE < letter < _DELETE:
        return REFUSED
    return at + 3


@compiled
def _scan_id(base: Int, at: Int, row: Int) -> Int:
    """Set a flow's id in the row, a number as it is, anything else as a span; return the address behind it."""
    stop, negative, digits, _, written = number(at)
    fits = stop != REFUSED and written == INTEGER and not negative and digits < _ID_LIMIT
    kind = ID_IS_NUMBER
    if not fits:
        stop = skip_value(at)
        kind = 0 if byte(at) == _LOWER_N else ID_IS_SPAN
    put(row + 8 * ID, np.int64(digits) if fits else _span(base, at, stop))
    put(row + 8 * FLAGS, (np.int64(word(row + 8 * FLAGS)) & ~(ID_IS_NUMBER | ID_IS_SPAN)) | kind)
    return stop


@compiled
def _scan_time(at: Int, exact: Int, row: Int, is_duration: Int) -> Int:
    """Set a time in the row, ns; return the address behind it, or a result that is no address."""
    absent, style = (DURATION_ABSENT, DURATION_STYLE) if is_duration else (START_ABSENT, START_STYLE)
    flags = np.int64(word(row + 8 * FLAGS)) & ~((((1 << STYLE_BITS) - 1) << style) | absent)
    if byte(at) == _LOWER_N:
        stop, negative, ns, slip, shape = skip_value(at), False, 0, 0, 0
        flags |= absent
    else:
        stop, negative, digits, scale, written = number(at)
        fine, ns, slip, shape = _time_ns(digits, scale, written, exact) if stop != REFUSED else (False, 0, 0, 0)
        if not fine and stop != REFUSED and not exact and written != INTEGER:
            fine, value = float_of(digits, scale)
            large = written == DECIMAL and -scale < len(_TENS) and digits // _TENS[-scale] >= _EXACT_US
            if (large or (fine and value >= EXACT_FLOAT_US)) and not is_duration:
                return _TOO_LARGE
            fine = fine and value < _MAX_US
            ns, negative = _float_ns(-value if negative else value), False
        stop = stop if fine else REFUSED
    sign = -1 if negative else 1
    put(row + 8 * (DURATION if is_duration else START), sign * ns)
    put(row + 8 * (DURATION_SLIP if is_duration else START_SLIP), sign * slip)
    put(row + 8 * FLAGS, flags | (shape << style))
    return stop


@compiled
def _time_ns(digits: Int, scale: Int, written: Int, exact: Int) -> tuple[bool, Int, Int, Int]:
    """Return (True if it needs no float, ns, ns too many if the fraction lacks zeros, what the fraction shows)."""
    if written == INTEGER:
        return digits <= _MAX_US, np.int64(digits) * 1000, 0, 0
    in_places = written == DECIMAL and -scale < len(_TENS) and (exact or -scale <= _NS_DIGITS)
    if not in_places or digits // _TENS[-scale] >= (_MAX_US if exact else _EXACT_US):
        return False, 0, 0, 0
    return (True, *_decimal_ns(digits, -scale))


@compiled
def _decimal_ns(digits: Int, places: Int) -> tuple[Int, Int, Int]:
    """Return (ns, ns too many if the fraction lacks zeros, what the fraction shows) of digits · 10^-places µs."""
    ten, unit = np.uint64(10), _TENS[places]
    whole, fraction = digits // unit, digits % unit
    if places > _NS_DIGITS:
        return np.int64(whole) * 1000 + _rounded(fraction, _TENS[places - _NS_DIGITS]), 0, 2
    padded = np.int64(fraction * _TENS[_NS_DIGITS - places])
    shape = 1 if places < _NS_DIGITS else 0
    if places > 1 and fraction * ten < unit:
        shape |= 2
    if places > 1 and fraction % ten == np.uint64(0):
        shape |= 4
    return np.int64(whole) * 1000 + padded, padded - np.int64(fraction), shape


@compiled
def _rounded(value: Int, unit: Int) -> Int:
    """Return value / unit as an integer, rounded half to even."""
    below, twice = np.int64(value // unit), np.int64(value % unit) * 2
    return below + (twice > np.int64(unit) or (twice == np.int64(unit) and below % 2 == 1))


@compiled
def _float_ns(value: float) -> Int:
    """Return µs as ns, rounded as `times.numbers_to_ns` does."""
    whole = np.floor(value)
    return np.int64(whole) * 1000 + np.int64(np.rint((value - whole) * 1000))


@compiled
def _scan_args(base: Int, at: Int, known: Int, argument: Int) -> tuple[Int, Int]:
    """Add the arguments of an event; return (address behind them, their number)."""
    if byte(at) != _OPEN:
        return REFUSED, 0
    used, seen, one = 0, np.uint64(0), np.uint64(1)
    at = blank(at + 1)
    more = byte(at) != _CLOSE
    while more:
        start, at = at + 1, key_end(at)
        if at == REFUSED:
            return REFUSED, used
        key = key_number(start, at - 1, known)
        at = value_behind(at)
        if at == REFUSED:
            return REFUSED, used
        if key == UNKNOWN:
            at = skip_value(at)
        else:
            place = used
            if (seen >> np.uint64(key)) & one:  # the last of equal keys counts
                place = 0
                while np.int64(word(argument + 8 * (ARGUMENT_WIDTH * place + 1))) & (SPAN - 1) != key:
                    place += 1
            else:
                used, seen = used + 1, seen | (one << np.uint64(key))
            at = _scan_argument(base, at, key, key_kind(key, known), argument + 8 * ARGUMENT_WIDTH * place)
        if at == REFUSED:
            return REFUSED, used
        at = blank(at)
        more = byte(at) == _COMMA
        if more:
            at = blank(at + 1)
    return at + 1 if byte(at) == _CLOSE else REFUSED, used


@compiled
def _scan_argument(base: Int, at: Int, key: Int, kind: Int, argument: Int) -> Int:
    """Set an argument; return the address behind it."""
    put(argument + 8, key)
    if kind < TEXT and (byte(at) == _MINUS or _ZERO <= byte(at) <= _NINE):
        stop, negative, digits, scale, written = number(at)
        if stop != REFUSED:
            certain, value = float_of(digits, scale)
            if kind == FLOAT and certain:
                put(argument + 16, np.float64(-value if negative else value).view(np.int64))
                return stop
            if written == INTEGER and kind == UNSIGNED and not negative:
                put(argument + 16, np.int64(digits))
                return stop
            if written == INTEGER and kind == SIGNED and digits < _ID_LIMIT:
                put(argument + 16, -np.int64(digits) if negative else np.int64(digits))
                return stop
    stop = skip_value(at)
    put(argument + 16, ((at - base) << 32) | (stop - at))
    if kind < TEXT or (kind == TEXT and byte(at) != _QUOTE):
        put(argument + 8, key + SPAN)
    return stop


UNKNOWN = -1
"""Number of a key that is not in the table."""
MAX_KEYS = np.iinfo(np.uint64).bits
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
GOLDEN = 0x9E3779B97F4A7C15
"""A multiplier that spreads numbers over the slots of a hash table: 2⁶⁴ over the golden ratio. Source: Knuth, The Art
of Computer Programming, 6.4. Doubled, it would be even, and spread worse; it changes times only."""


def key_table(keys: Sequence[tuple[str, int]]) -> Ints:
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
        around = with_padding(text.rjust(_KEY_BYTES, b"\0"))
        start = text_address(around) + _KEY_BYTES - len(text)
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
    return first ^ (word(stop - 8) * np.uint64(GOLDEN)) ^ np.uint64(length)


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
