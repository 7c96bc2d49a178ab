"""The wire format of protobuf for compiled code: numbers and fields at addresses, and where packets begin and end.

A function that reads takes an address and the end of the message, and reads no byte at or behind the end. It returns
the address behind the last byte that it read, or `BROKEN`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from htagraph.core.compiled import njit
from htagraph.trace.kineto.scan.grammar import Int, byte, compiled, put, word

__all__ = [
    "BODY_WIDTH",
    "BROKEN",
    "CLOCK",
    "FIXED64",
    "FLAGS",
    "KIND",
    "LENGTH",
    "NO_CLOCK",
    "PACKET",
    "SEQUENCE",
    "START",
    "STOP",
    "TIME",
    "VARINT",
    "Field",
    "Part",
    "field",
    "fill",
    "find_bodies",
    "is_message",
    "tag_of",
    "varint",
]

Part: TypeAlias = tuple[Int, Int]
"""An address, and a number of bytes or rows."""
Field: TypeAlias = tuple[Int, Int, Int, Int]
"""Tag; the number, or the bytes of a message or text; where its content begins; the address behind it."""
Walk: TypeAlias = tuple[Int, Int, Int, Int]
"""Bodies found, packets that cannot be read, stretches of bytes that are no packets, bytes at the end that are none."""

BROKEN: Final = -1
"""Address that stands for bytes which are not protobuf."""
VARINT: Final = 0
"""A wire type, the lowest three bits of a tag, as the next three; by the format. This one is a number."""
FIXED64: Final = 1
"""Eight bytes."""
LENGTH: Final = 2
"""A length, and as many bytes."""
FIXED32: Final = 5
"""Four bytes."""
_VARINT_BYTES = 10
"""Bytes of the longest number: 64 bits in groups of seven. It cannot be doubled."""
_MAX_TAG = np.uint64((1 << 32) - 1)

(
    KIND,
    START,
    STOP,
    TIME,
    SEQUENCE,
    FLAGS,
    CLOCK,
    PACKET,
) = range(8)
"""Columns of a body (a message in a packet): number of its field, where it begins and ends; time, sequence,
flags and clock of the packet; and where the packet begins. Positions count from the beginning of the text."""
BODY_WIDTH = PACKET + 1
NO_CLOCK: Final = -1
"""Stands for a packet that names no clock."""

_CLEARED: Final = 1
"""The flag that says that names interned before are forgotten."""
_MOST_FIELDS = 64
"""Fields of a packet, at most; fields of its messages do not count. Chosen: packets of today have up to 15. Doubled,
the search for packets behind damage takes twice as long in the worst case."""


def tag_of(number: int, wire: int) -> int:
    """Return the tag of a field.

    Example:
        >>> tag_of(1, LENGTH)
        10
    """
    return number << 3 | wire


_PACKET_TAG = tag_of(1, LENGTH)
_TIME_TAG = tag_of(8, VARINT)
_SEQUENCE_TAG = tag_of(10, VARINT)
_FLAGS_TAG = tag_of(13, VARINT)
_CLEARED_TAG = tag_of(41, VARINT)
_CLOCK_TAG = tag_of(58, VARINT)
_DESCRIPTOR_TAG = tag_of(60, LENGTH)


@compiled
def varint(address: Int, end: Int) -> tuple[Int, Int]:
    """Return (the number at an address, the address behind it)."""
    value = np.uint64(0)
    for place in range(_VARINT_BYTES):
        if address + place >= end:
            return value, BROKEN
        bits = byte(address + place)
        value |= np.uint64(bits & 0x7F) << np.uint64(7 * place)
        if bits < 0x80:
            return value, address + place + 1
    return value, BROKEN


@compiled
def field(address: Int, end: Int) -> Field:
    """Return the field at an address; its last part is `BROKEN` where there is none that ends in the message."""
    tag, address = varint(address, end)
    if address == BROKEN or tag < np.uint64(8) or tag > _MAX_TAG:
        return 0, 0, 0, BROKEN
    wire = np.int64(tag) & 7
    value = np.uint64(0)
    start = address
    behind = BROKEN
    if wire == VARINT:
        value, behind = varint(address, end)
    elif wire == LENGTH:
        value, start = varint(address, end)
        if start != BROKEN and value <= np.uint64(end - start):
            behind = start + np.int64(value)
    elif wire == FIXED64 and end - address >= 8:
        value = word(address)
        behind = address + 8
    elif wire == FIXED32 and end - address >= 4:
        value = word(address) & np.uint64(0xFFFF_FFFF)
        behind = address + 4
    return (
        np.int64(tag),
        np.int64(value),
        start,
        behind,
    )


@compiled
def is_message(address: Int, end: Int) -> bool:
    """Return whether fields fill the bytes from an address to the end."""
    while address < end:
        _, _, _, address = field(address, end)
        if address == BROKEN:
            return False
    return True


@compiled
def fill(address: Int, step: Int, count: Int, value: Int) -> None:
    """Write a value so many times: at an address, and each time `step` numbers of 64 bits further on."""
    for place in range(count):
        put(address + 8 * step * place, value)


@njit(cache=True, nogil=True)
def find_bodies(text: Part, rows: Part) -> Walk:
    """Fill rows with the bodies of packets; bodies without room are counted only."""
    base = text[0]
    end = base + text[1]
    address = base
    total = broken = stretches = lost = 0
    while address < end:
        start, behind = _packet_at(address, end)
        count = -1
        if behind != BROKEN:
            count = _packet(
                base,
                address,
                start,
                behind,
                rows,
                total,
            )
        if count >= 0:
            total += count
            address = behind
            continue
        resumed = _next_packet(address + 1, end)
        if resumed == behind:
            broken += 1
        else:
            stretches += 1
            lost = end - address if resumed == end else 0
        address = resumed
    return total, broken, stretches, lost


@compiled
def _packet_at(address: Int, end: Int) -> Part:
    """Return (where the content of the packet at an address begins, the address behind it)."""
    tag, _, start, behind = field(address, end)
    return (
        start,
        behind if tag == _PACKET_TAG else BROKEN,
    )


@compiled
def _packet(
    base: Int,
    packet: Int,
    address: Int,
    end: Int,
    rows: Part,
    total: Int,
) -> Int:
    """Add the bodies of a packet to the rows from `total` on; return their number, or -1 if it cannot be read."""
    has_room = total < rows[1]
    first = rows[0] + 8 * BODY_WIDTH * total
    if has_room:
        _begin(first, packet - base, address - base)
    count = 0
    for _ in range(_MOST_FIELDS + 1):
        if address >= end:
            break
        tag, value, start, address = field(address, end)
        if address == BROKEN:
            return -1
        if tag & 7 == LENGTH:
            if total + count < rows[1]:
                _put_body(
                    first + 8 * BODY_WIDTH * count,
                    tag >> 3,
                    start - base,
                    address - base,
                )
            count += 1
        elif has_room:
            _put_header(first, tag, value)
    if address < end:
        return -1
    _copy_header(first, min(count, rows[1] - total))
    return max(count, 1)


@compiled
def _copy_header(first: Int, count: Int) -> None:
    """Give all bodies of a packet the time, sequence, flags and clock of the first."""
    if count < 2:
        return
    for column in range(TIME, BODY_WIDTH):
        header = np.int64(word(first + 8 * column))
        fill(
            first + 8 * (BODY_WIDTH + column),
            BODY_WIDTH,
            count - 1,
            header,
        )


@compiled
def _begin(row: Int, packet: Int, start: Int) -> None:
    """Set a row to a packet that says nothing."""
    _put_body(row, 0, start, start)
    for column in (TIME, SEQUENCE, FLAGS):
        put(row + 8 * column, 0)
    put(row + 8 * CLOCK, NO_CLOCK)
    put(row + 8 * PACKET, packet)


@compiled
def _put_body(row: Int, kind: Int, start: Int, stop: Int) -> None:
    put(row + 8 * KIND, kind)
    put(row + 8 * START, start)
    put(row + 8 * STOP, stop)


@compiled
def _put_header(row: Int, tag: Int, value: Int) -> None:
    """Note a field that is about the whole packet."""
    if tag == _FLAGS_TAG or (tag == _CLEARED_TAG and value):
        flags = np.int64(word(row + 8 * FLAGS))
        put(
            row + 8 * FLAGS,
            flags | (value if tag == _FLAGS_TAG else _CLEARED),
        )
    elif tag == _TIME_TAG:
        put(row + 8 * TIME, value)
    elif tag == _SEQUENCE_TAG:
        put(row + 8 * SEQUENCE, value)
    elif tag == _CLOCK_TAG:
        put(row + 8 * CLOCK, value)


@compiled
def _next_packet(address: Int, end: Int) -> Int:
    """Return where the next packet begins, `end` if there is none."""
    while address < end:
        if byte(address) == _PACKET_TAG and _is_packet(address, end):
            return address
        address += 1
    return end


@compiled
def _is_packet(address: Int, end: Int) -> bool:
    """Return whether a packet begins here: its fields fill it, and it has a time, a sequence or a track."""
    address, end = _packet_at(address, end)
    if end == BROKEN:
        return False
    says_enough = False
    for _ in range(_MOST_FIELDS):
        if address >= end:
            return says_enough
        tag, _, _, address = field(address, end)
        if address == BROKEN:
            return False
        says_enough |= tag in (
            _TIME_TAG,
            _SEQUENCE_TAG,
            _DESCRIPTOR_TAG,
        )
    return False
