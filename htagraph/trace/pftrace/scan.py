"""One compiled pass over the bodies of packets: track events and stages of a device → rows of numbers.

Texts are handed on as spans: position · 2³² + length, from the beginning of the text that is scanned.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from htagraph.core.compiled import njit
from htagraph.trace.kineto.scan.grammar import Int, byte, compiled, put, word
from htagraph.trace.pftrace.wire import (
    BODY_WIDTH,
    BROKEN,
    FIXED64,
    KIND,
    LENGTH,
    START,
    STOP,
    VARINT,
    Part,
    field,
    fill,
    is_message,
    tag_of,
    varint,
)

__all__ = [
    "BEGIN",
    "CATEGORY",
    "CATEGORY_IID",
    "COUNTER",
    "DEVICE_WORK",
    "DURATION",
    "END",
    "EVENT",
    "EVENT_WIDTH",
    "FLOAT",
    "FORM",
    "GPU",
    "INSTANT",
    "KERNEL",
    "KEY",
    "MOST_DIGITS",
    "NAME",
    "NAME_IID",
    "NOTED",
    "NOTE_WIDTH",
    "NO_TRACK",
    "NUMBER",
    "QUEUE",
    "RAW",
    "STAGE",
    "STAGE_EVENT",
    "TEXT",
    "TEXT_IID",
    "TRACK",
    "TRACK_EVENT",
    "TYPE",
    "UNREADABLE",
    "UNSIGNED",
    "VALUE",
    "WAIT_WIDTH",
    "scan_events",
    "unreadable_samples",
]

TRACK_EVENT: Final = 11
"""Number of the field of a track event in a packet."""
STAGE_EVENT: Final = 53
"""Number of the field of a stage of a device in a packet."""
(
    BEGIN,
    END,
    INSTANT,
    COUNTER,
    DEVICE_WORK,
    UNREADABLE,
) = range(1, 7)
"""Types of rows: the four of track events, a stage of a device, and a body whose fields cannot be read."""

(
    TYPE,
    TRACK,
    NAME,
    NAME_IID,
    CATEGORY,
    CATEGORY_IID,
) = range(6)
DURATION, EVENT, GPU, QUEUE, STAGE, KERNEL = range(6, 12)
"""Columns of an event's row: its type, track, name and category (each a span, or the id of an interned text, 0 for
none), and of a stage its duration in ns, its id, device, hardware queue, stage and kernel."""
EVENT_WIDTH = KERNEL + 1
NO_TRACK: Final = -1
"""Stands for a track event that names no track."""

NOTED, KEY, FORM, VALUE = range(4)
"""Columns of an argument's row: number of the event's row, key (a span, or -1 less the id of an interned text), form of
the value, and the value."""
NOTE_WIDTH = VALUE + 1
NUMBER, UNSIGNED, FLOAT, TEXT, TEXT_IID, RAW = range(6)
"""Forms of values: int64, uint64, the bits of a float64, a span, the id of an interned text, and the span of an
argument that holds other arguments."""
WAIT_WIDTH = 2
"""Columns of a wait: number of the event's row, and the id of the event that it waited for."""

_TYPE = tag_of(9, VARINT)
_TRACK = tag_of(11, VARINT)
_NAME = tag_of(23, LENGTH)
_NAME_IID = tag_of(10, VARINT)
_CATEGORY = tag_of(22, LENGTH)
_CATEGORY_IID = tag_of(3, VARINT)
_CATEGORY_IIDS = tag_of(3, LENGTH)
_ANNOTATION = tag_of(4, LENGTH)

_STAGE_COLUMNS = {
    tag_of(1, VARINT): EVENT,
    tag_of(2, VARINT): DURATION,
    tag_of(11, VARINT): GPU,
    tag_of(13, VARINT): QUEUE,
    tag_of(14, VARINT): STAGE,
    tag_of(19, VARINT): KERNEL,
    tag_of(20, VARINT): NAME_IID,
}
_COLUMN_OF = np.full(256, -1, np.int64)
_COLUMN_OF[list(_STAGE_COLUMNS)] = list(_STAGE_COLUMNS.values())
_STAGE_NAME = tag_of(17, LENGTH)
_EXTRA = tag_of(6, LENGTH)
_WAIT = tag_of(18, VARINT)
_WAITS = tag_of(18, LENGTH)

_EXTRA_NAME = tag_of(1, LENGTH)
_EXTRA_VALUE = tag_of(2, LENGTH)

_KEY_IID = tag_of(1, VARINT)
_KEY = tag_of(10, LENGTH)
_FORMS = {
    tag_of(2, VARINT): NUMBER,
    tag_of(3, VARINT): UNSIGNED,
    tag_of(4, VARINT): NUMBER,
    tag_of(5, FIXED64): FLOAT,
    tag_of(6, LENGTH): TEXT,
    tag_of(7, VARINT): UNSIGNED,
    tag_of(8, LENGTH): RAW,
    tag_of(9, LENGTH): TEXT,
    tag_of(11, LENGTH): RAW,
    tag_of(12, LENGTH): RAW,
    tag_of(17, VARINT): TEXT_IID,
}
_FORM_OF = np.full(256, -1, np.int64)
_FORM_OF[list(_FORMS)] = list(_FORMS.values())

_COUNTERS = tag_of(1, LENGTH)
_COUNTER = tag_of(1, LENGTH)
_SAMPLE = tag_of(2, LENGTH)

_ZERO, _NINE, _MINUS = b"09-"
MOST_DIGITS = 18
"""Digits of a number that surely fits into int64; longer ones stay texts. Doubled, they would overflow."""


@njit(cache=True, nogil=True)
def scan_events(
    base: Int,
    bodies: Part,
    rows: Int,
    notes: Int,
    waits: Int,
) -> Part:
    """Fill a row per body, and rows of arguments and waits; return (number of arguments, number of waits).

    Args:
        base: address of the text.
        bodies: address and number of bodies, see `wire`; their kinds are `TRACK_EVENT` and `STAGE_EVENT`.
        rows: address of as many rows.
        notes: address of a row of arguments for every two bytes of the bodies.
        waits: address of a row of waits for every byte of the bodies.
    """
    noted = waited = 0
    for number in range(bodies[1]):
        body = bodies[0] + 8 * BODY_WIDTH * number
        start = base + np.int64(word(body + 8 * START))
        stop = base + np.int64(word(body + 8 * STOP))
        row = rows + 8 * EVENT_WIDTH * number
        note = notes + 8 * NOTE_WIDTH * noted
        fill(row, 1, EVENT_WIDTH, 0)
        put(row + 8 * TRACK, NO_TRACK)
        more = 0
        if np.int64(word(body + 8 * KIND)) == TRACK_EVENT:
            count = _track_event(base, start, stop, row, note)
        else:
            count, more = _stage(
                base,
                start,
                stop,
                row,
                note,
                waits + 8 * WAIT_WIDTH * waited,
            )
        if count < 0:
            put(row + 8 * TYPE, UNREADABLE)
            continue
        fill(note, NOTE_WIDTH, count, number)
        fill(
            waits + 8 * WAIT_WIDTH * waited,
            WAIT_WIDTH,
            more,
            number,
        )
        noted += count
        waited += more
    return noted, waited


@compiled
def _span(base: Int, start: Int, behind: Int) -> Int:
    return (start - base) << 32 | (behind - start)


@compiled
def _track_event(
    base: Int,
    address: Int,
    end: Int,
    row: Int,
    note: Int,
) -> Int:
    """Fill a row and its arguments; return their number, or -1 if a field cannot be read."""
    count = 0
    while address < end:
        tag, value, start, address = field(address, end)
        if address == BROKEN:
            return -1
        if tag == _ANNOTATION:
            added = _annotation(
                base,
                start,
                address,
                note + 8 * NOTE_WIDTH * count,
            )
            if added < 0:
                return -1
            count += added
        elif tag == _TYPE:
            put(
                row + 8 * TYPE,
                value if BEGIN <= value <= COUNTER else 0,
            )
        elif tag == _TRACK:
            put(row + 8 * TRACK, value)
        elif tag == _NAME:
            put(
                row + 8 * NAME,
                _span(base, start, address),
            )
        elif tag == _NAME_IID:
            put(row + 8 * NAME_IID, value)
        elif not _category(base, tag, value, start, address, row):
            return -1
    return count


@compiled
def _category(
    base: Int,
    tag: Int,
    value: Int,
    start: Int,
    behind: Int,
    row: Int,
) -> bool:
    """Set the first category; return False if the field cannot be read."""
    if word(row + 8 * CATEGORY_IID) or word(row + 8 * CATEGORY):
        return True
    if tag == _CATEGORY:
        put(
            row + 8 * CATEGORY,
            _span(base, start, behind),
        )
    elif tag == _CATEGORY_IID:
        put(row + 8 * CATEGORY_IID, value)
    elif tag == _CATEGORY_IIDS and behind > start:
        first, address = varint(start, behind)
        put(row + 8 * CATEGORY_IID, np.int64(first))
        return address != BROKEN
    return True


@compiled
def _stage(
    base: Int,
    address: Int,
    end: Int,
    row: Int,
    note: Int,
    wait: Int,
) -> Part:
    """Fill a row, its arguments and its waits; return the numbers of both, -1 if a field cannot be read."""
    count = waited = 0
    put(row + 8 * TYPE, DEVICE_WORK)
    while address < end:
        tag, value, start, address = field(address, end)
        if address == BROKEN:
            return -1, 0
        if tag == _EXTRA:
            if not _extra(
                base,
                start,
                address,
                note + 8 * NOTE_WIDTH * count,
            ):
                return -1, 0
            count += 1
        elif tag < len(_COLUMN_OF) and _COLUMN_OF[tag] >= 0:
            put(row + 8 * _COLUMN_OF[tag], value)
        elif tag == _STAGE_NAME:
            put(
                row + 8 * NAME,
                _span(base, start, address),
            )
        elif tag == _WAIT:
            put(
                wait + 8 * (WAIT_WIDTH * waited + 1),
                value,
            )
            waited += 1
        elif tag == _WAITS:
            added = _packed_waits(
                start,
                address,
                wait + 8 * WAIT_WIDTH * waited,
            )
            if added < 0:
                return -1, 0
            waited += added
    return count, waited


@compiled
def _packed_waits(address: Int, end: Int, wait: Int) -> Int:
    """Add the ids in a packed field; return their number, or -1 if one cannot be read."""
    count = 0
    while address < end:
        awaited, address = varint(address, end)
        if address == BROKEN:
            return -1
        put(
            wait + 8 * (WAIT_WIDTH * count + 1),
            np.int64(awaited),
        )
        count += 1
    return count


@compiled
def _extra(base: Int, address: Int, end: Int, note: Int) -> bool:
    """Fill the row of an argument whose value is a text; one that is a plain decimal number becomes that number."""
    fill(note, 1, NOTE_WIDTH, 0)
    put(note + 8 * FORM, TEXT)
    while address < end:
        tag, _, start, address = field(address, end)
        if address == BROKEN:
            return False
        if tag == _EXTRA_NAME:
            put(
                note + 8 * KEY,
                _span(base, start, address),
            )
        elif tag == _EXTRA_VALUE:
            is_number, number = _decimal(start, address)
            put(
                note + 8 * FORM,
                NUMBER if is_number else TEXT,
            )
            put(
                note + 8 * VALUE,
                number if is_number else _span(base, start, address),
            )
    return True


@compiled
def _decimal(address: Int, end: Int) -> tuple[bool, Int]:
    """Return (whether a text is a number as Python writes it, the number)."""
    is_negative = address < end and byte(address) == _MINUS
    address += np.int64(is_negative)
    digits = end - address
    if not 1 <= digits <= MOST_DIGITS or (byte(address) == _ZERO and (digits > 1 or is_negative)):
        return False, 0
    number = 0
    while address < end:
        digit = byte(address)
        if not _ZERO <= digit <= _NINE:
            return False, 0
        number = 10 * number + (digit - _ZERO)
        address += 1
    return True, -number if is_negative else number


@compiled
def _annotation(base: Int, begin: Int, end: Int, note: Int) -> Int:
    """Fill the row of an argument; return 1, 0 for one without a value, -1 if a field cannot be read."""
    address = begin
    put(note + 8 * KEY, 0)
    put(note + 8 * FORM, -1)
    while address < end:
        tag, value, start, address = field(address, end)
        if address == BROKEN:
            return -1
        if tag == _KEY:
            put(
                note + 8 * KEY,
                _span(base, start, address),
            )
        elif tag == _KEY_IID:
            put(
                note + 8 * KEY,
                -1 - (value & np.int64(2**62 - 1)),
            )
        else:
            form = _FORM_OF[tag] if tag < len(_FORM_OF) else -1
            if form == TEXT:
                value = _span(base, start, address)
            elif form == RAW:
                value = _span(base, begin, end)
            if form >= 0:
                put(note + 8 * FORM, form)
                put(note + 8 * VALUE, value)
    return np.int64(np.int64(word(note + 8 * FORM)) >= 0)


@njit(cache=True, nogil=True)
def unreadable_samples(base: Int, bodies: Part) -> Int:
    """Return the number of bodies, samples of a device, in which a field cannot be read."""
    count = 0
    for number in range(bodies[1]):
        body = bodies[0] + 8 * BODY_WIDTH * number
        start = base + np.int64(word(body + 8 * START))
        stop = base + np.int64(word(body + 8 * STOP))
        if not _is_sample(start, stop):
            count += 1
    return count


@compiled
def _is_sample(address: Int, end: Int) -> bool:
    while address < end:
        tag, _, start, address = field(address, end)
        if address == BROKEN:
            return False
        if tag == _SAMPLE and not is_message(start, address):
            return False
        if tag == _COUNTERS and not _are_counters(start, address):
            return False
    return True


@compiled
def _are_counters(address: Int, end: Int) -> bool:
    """Return whether the description of counters can be read, and in it each counter."""
    while address < end:
        tag, _, start, address = field(address, end)
        if address == BROKEN:
            return False
        if tag == _COUNTER and not is_message(start, address):
            return False
    return True
