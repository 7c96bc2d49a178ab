"""Perfetto's native format, by compiled passes: the packets of many slices or values of counters, as bytes.

A file is a sequence of packets (`perfetto/trace/trace_packet.proto`), each a message of Protocol Buffers: numbers as
varints (seven bits per byte, the lowest first), fields behind a tag of their number and kind, messages behind their
length. Here a slice is a packet where it begins and one where it ends; Perfetto sorts packets by time, and those of one
moment by their place in the file.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit
from htagraph.output.export.event_batches import Slices
from htagraph.output.export.row_texts import NO_NUMBER, writable

__all__ = ["ARGS_IID", "SEQUENCE", "Flows", "begin_packets", "end_packets", "value_packets"]

Flows: TypeAlias = tuple[Array, Array]
"""Ids of the arrows that begin or end at slices, and where those of each slice begin in them."""

SEQUENCE: Final = 1
"""The sequence that all packets belong to; names are interned per sequence."""
ARGS_IID: Final = 1
"""Interned name of the annotation that holds a slice's arguments."""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_HEAD_BYTES: Final = 64
"""Bytes that the numbers of a packet take at most: three lengths of 5, time 11, track, name, category 11 each."""
_FLOW_BYTES: Final = 10
_VALUE_BYTES: Final = 10


def begin_packets(slices: Slices, tracks: Array, iids: Array, flows: Flows) -> tuple[Array, Array]:
    """Return the packets in which slices begin, and where each begins; those without duration end there, too.

    Args:
        slices: in the order of the file.
        tracks: the track of each place of the slices.
        iids: the interned number of each text of the slices.
        flows: the arrows at each slice.
    """
    columns = np.empty((len(slices), 6), np.int64)
    columns[:, 0], columns[:, 1] = np.maximum(slices.start, 0), slices.duration  # varints have no sign
    columns[:, 2] = tracks[slices.place]
    columns[:, 3] = iids[slices.name]
    columns[:, 4] = np.where(slices.category < 0, 0, iids[slices.category])
    columns[:, 5] = slices.args
    size = (
        (2 * _HEAD_BYTES) * len(slices)
        + int((slices.args & 0xFFFF_FFFF).sum())
        + _FLOW_BYTES * int(flows[1][-1] - flows[1][0])
    )
    out, starts = np.empty(size, np.uint8), np.zeros(len(slices) + 1, np.int64)
    _fill_begins(columns, writable(slices.source), flows, out, starts)
    return out[: starts[-1]], starts


def end_packets(track: Array, moment: Array) -> Array:
    r"""Return the packets in which slices end.

    Args:
        track: of each slice.
        moment: ns since the base of what is written.

    Example:
        >>> end_packets(np.array([3]), np.array([200])).tobytes()
        b'\n\x0b@\xc8\x01P\x01Z\x04H\x02X\x03'
    """
    out = np.empty(_HEAD_BYTES * len(track), np.uint8)
    return out[: _fill_ends(track.astype(np.int64), moment, out)]


def value_packets(track: int, moment: Array, value: Array) -> Array:
    """Return the packets of a counter's values."""
    out = np.empty((_HEAD_BYTES + _VALUE_BYTES) * len(moment), np.uint8)
    bits = np.ascontiguousarray(value.astype("<f8")).view(np.int64)
    return out[: _fill_values(track, moment, bits, out)]


@njit(nogil=True)
def _put(out: Array, at: int, number: int) -> int:
    """Write a number that is not negative as a varint; return the position behind it."""
    while number >= 0x80:
        out[at] = (number & 0x7F) | 0x80
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@njit(nogil=True)
def _size(number: int) -> int:
    """Return how many bytes a varint takes."""
    size = 1
    while number >= 0x80:
        number >>= 7
        size += 1
    return size


@njit(nogil=True)
def _put_head(out: Array, at: int, moment: int, event_bytes: int) -> int:
    """Write a packet up to its track event: Trace.packet (1), TracePacket.timestamp (8), sequence (10), event (11)."""
    out[at] = 0x0A
    at = _put(out, at + 1, 1 + _size(moment) + 2 + 1 + _size(event_bytes) + event_bytes)
    out[at] = 0x40
    at = _put(out, at + 1, moment)
    out[at], out[at + 1], out[at + 2] = 0x50, SEQUENCE, 0x5A
    return _put(out, at + 3, event_bytes)


@njit(nogil=True)
def _put_on_track(out: Array, at: int, kind: int, track: int) -> int:
    """Write TrackEvent.type (9) and track_uuid (11)."""
    out[at], out[at + 1], out[at + 2] = 0x48, kind, 0x58
    return _put(out, at + 3, track)


@njit(nogil=True)
def _put_fixed(out: Array, at: int, number: int) -> int:
    """Write the 8 bytes of a number, the lowest first."""
    for shift in range(0, 64, 8):
        out[at] = (number >> shift) & 0xFF
        at += 1
    return at


@njit(nogil=True)
def _put_end(out: Array, at: int, track: int, moment: int) -> int:
    at = _put_head(out, at, moment, 3 + _size(track))
    return _put_on_track(out, at, _END, track)


@njit(cache=True, nogil=True)
def _fill_begins(columns: Array, source: Array, flows: Flows, out: Array, starts: Array) -> None:
    ids, first_id = flows
    at = 0
    for row in range(len(columns)):
        moment, duration, track, name, category, args = columns[row]
        length = args & 0xFFFF_FFFF
        annotation = 2 + 1 + _size(length) + length  # DebugAnnotation.name_iid (1), legacy_json_value (9)
        size = 3 + _size(track) + 1 + _size(name) + _FLOW_BYTES * (first_id[row + 1] - first_id[row])
        size += 1 + _size(category) if category else 0
        size += 1 + _size(annotation) + annotation if length else 0
        at = _put_head(out, at, moment, size)
        at = _put_on_track(out, at, _INSTANT if duration == NO_NUMBER else _BEGIN, track)
        out[at] = 0x50  # TrackEvent.name_iid (10)
        at = _put(out, at + 1, name)
        if category:
            out[at] = 0x18  # category_iids (3)
            at = _put(out, at + 1, category)
        if length:
            out[at] = 0x22  # debug_annotations (4)
            at = _put(out, at + 1, annotation)
            out[at], out[at + 1], out[at + 2] = 0x08, ARGS_IID, 0x4A
            at = _put(out, at + 3, length)
            first = args >> 32
            out[at : at + length] = source[first : first + length]
            at += length
        for place in range(first_id[row], first_id[row + 1]):
            out[at], out[at + 1] = 0xF9, 0x02  # flow_ids (47)
            at = _put_fixed(out, at + 2, ids[place])
        if duration == 0:
            at = _put_end(out, at, track, moment)
        starts[row + 1] = at


@njit(cache=True, nogil=True)
def _fill_ends(track: Array, moment: Array, out: Array) -> int:
    at = 0
    for row in range(len(track)):
        at = _put_end(out, at, track[row], moment[row])
    return at


@njit(cache=True, nogil=True)
def _fill_values(track: int, moment: Array, bits: Array, out: Array) -> int:
    at = 0
    for row in range(len(moment)):
        at = _put_head(out, at, moment[row], 3 + _size(track) + _VALUE_BYTES)
        at = _put_on_track(out, at, _COUNTER, track)
        out[at], out[at + 1] = 0xE1, 0x02  # double_counter_value (44)
        at = _put_fixed(out, at + 2, bits[row])
    return at
