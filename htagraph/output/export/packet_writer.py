"""Writing a file in Perfetto's native format: tracks in the order that we want, slices, arrows and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit
from htagraph.output.export.originals import MetSlices
from htagraph.output.export.path_tracks import PATH_PID
from htagraph.output.export.trace_writer import RawEvent, writable
from htagraph.output.scene import BYTES, COUNT, NO_NUMBER, Slices, Values
from htagraph.output.whole_files import OutputFile
from htagraph.trace.columns import Interner
from htagraph.trace.remote import TracePath

__all__ = [
    "SEQUENCE", "Flows", "PacketWriter", "field", "message", "put_varint", "varint", "varint_bytes",
]  # fmt: skip

_PACKET, _SEQUENCE_ID, _FLAGS, _INTERNED, _DESCRIPTOR = 1, 10, 13, 12, 60
_CATEGORIES, _NAMES, _ANNOTATION_NAMES = 1, 2, 3  # of InternedData
_UUID, _PARENT, _NAME, _COUNTER_UNIT, _CHILDREN, _RANK, _MERGING = 1, 5, 2, 8, 11, 12, 15  # of TrackDescriptor
_EXPLICIT, _NO_MERGING = 3, 2
_UNIT, _UNIT_NAME = 3, 6  # of CounterDescriptor
_UNITS = {COUNT: 0, BYTES: 3}
_MAX_RANK = int(np.iinfo(np.int32).max)
_COUNTERS_BEHIND = (_MAX_RANK + 1) // 2
"""Order of a process's counters: behind its tracks."""
_PROCESS, _THREAD = 1, 2  # parts of a track's key: process; thread; of counters, name and series
Flows: TypeAlias = tuple[Array, Array]
"""Ids of the arrows that begin or end at slices, and where those of each slice begin in them."""
SEQUENCE, ARGS_IID, _CLEARED = 1, 1, 1
"""The sequence that all packets belong to (names are interned per sequence), the interned name of the annotation that
holds a slice's arguments, and the flag that says that names are interned from here on."""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_HEAD_BYTES: Final = 64
"""Bytes that the numbers of a packet take at most: three lengths of 5, time 11, track, name, category 11 each."""
_FIXED_BYTES: Final = 10
"""Bytes of a field of a fixed size, such as the id of an arrow or the value of a counter: a tag of 2 and 8 bytes."""


class PacketWriter(OutputFile):
    """Writes a file of packets: a context manager; the file appears at its place when it is complete.

    Processes are tracks without events, in the order of their numbers, and have their threads and counters below.
    """

    def __init__(self, target: str | Path, *, sources: Iterable[TracePath] = ()) -> None:
        super().__init__(target, sources=sources)
        self._tracks = Interner[tuple[Any, ...]]()
        self._texts = Interner[str]()
        self._interned = 0
        self._titles: dict[tuple[Any, ...], str] = {}
        self._order: dict[tuple[Any, ...], int] = {}
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        args = message((_ANNOTATION_NAMES, message((1, ARGS_IID), (2, "args"))))
        self._packet((_FLAGS, _CLEARED), (_INTERNED, args))

    def begin(self, header: Mapping[str, Any]) -> None:
        """Write nothing: this format has no place for the keys of a trace file's root."""

    def add(self, events: Iterable[RawEvent | Slices | Values]) -> None:
        """Write events; all slices of a track must come in one call, and all arrows at them, too."""
        slices, arrows, batches = list[RawEvent](), list[RawEvent](), list[Slices]()
        for event in events:
            if isinstance(event, Slices):
                batches.append(_in_time(event))
            elif isinstance(event, Values):
                self._add_values(event)
            elif event["ph"] == "M":
                self._name(event)
            else:
                (slices if event["ph"] == "X" else arrows).append(event)
        if not (slices or batches):
            return
        batches.insert(0, _in_time(self._batch(slices)))  # arrows lead from these to others, none leads back
        for batch in batches:
            self.add_ends(batch.places, batch.place, batch.start, batch.duration)
        for batch, flows in zip(batches, self._flows(batches, arrows), strict=True):
            self.write(self.begins(batch, flows)[0])

    def add_ends(self, places: Iterable[tuple[int, int]], place: Array, start: Array, duration: Array) -> None:
        """Write where slices end that last some time: before they begin, or slices would begin before others end."""
        lasting = duration > 0
        self.write(end_packets(self._uuids(places)[place[lasting]], (start + duration)[lasting]))

    def begins(self, slices: Slices, flows: Flows) -> tuple[Array, Array]:
        """Return the packets in which slices begin, and where each begins; write the names that are new."""
        iids = np.array([1 + self._texts[text] for text in slices.texts], np.int64)
        if self._interned < len(self._texts):  # both names and categories have these numbers
            new = enumerate(islice(self._texts, self._interned, None), self._interned + 1)
            rows = [message((1, number), (2, text)) for number, text in new]
            self._packet((_INTERNED, b"".join(field(_CATEGORIES, row) + field(_NAMES, row) for row in rows)))
            self._interned = len(self._texts)
        return begin_packets(slices, self._uuids(slices.places), iids, flows)

    def write(self, packets: Array) -> None:
        """Write packets as they are."""
        self._write(packets.data)

    def _uuids(self, places: Iterable[tuple[int, int]]) -> Array:
        return np.array([self._uuid(*place) for place in places], np.int64)

    def _uuid(self, pid: int, tid: int) -> int:
        """Return the track of a thread; the path's first one is its process, to be seen before that is opened."""
        return 1 + self._tracks[(pid,) if pid == tid == PATH_PID else (pid, tid)]

    def _batch(self, events: list[RawEvent]) -> Slices:
        places, texts = Interner[tuple[int, int]](), Interner[str]()
        args = [self._encode(event["args"]) if event.get("args") else b"" for event in events]
        ends = np.cumsum([0, *(len(each) for each in args)], dtype=np.int64)
        rows = [
            (
                places[event["pid"], event["tid"]], _ns(event["ts"]), _ns(event["dur"]), texts[event["name"]],
                texts[event["cat"]] if event.get("cat") else -1,
            )
            for event in events
        ]  # fmt: skip
        place, start, duration, name, category = np.array(rows, np.int64).reshape(-1, 5).T
        spans, source = (ends[:-1] << 32) | np.diff(ends), np.frombuffer(b"".join(args), np.uint8)
        return Slices(list(places), list(texts), place, start, duration, name, category, spans, source)

    def _flows(self, batches: Sequence[Slices], arrows: Sequence[RawEvent]) -> Iterator[Flows]:
        """Yield the arrows at the slices of each batch: each end belongs to the slice that it meets."""
        track = np.concatenate([self._uuids(batch.places)[batch.place] for batch in batches])
        start, duration = (np.concatenate([getattr(each, what) for each in batches]) for what in ("start", "duration"))
        ends = np.array([(self._uuid(end["pid"], end["tid"]), _ns(end["ts"]), end["id"]) for end in arrows])
        lane, moment, number = ends.astype(np.int64).reshape(-1, 3).T
        met = MetSlices(track, start, duration, np.zeros(len(track), np.int32)).met(lane, moment)
        order = np.argsort(met, kind="stable")
        number, first = number[order], np.searchsorted(met[order], np.arange(len(track) + 1)).astype(np.int64)
        done = 0
        for batch in batches:
            yield number, first[done : done + len(batch) + 1]
            done += len(batch)

    def _add_values(self, values: Values) -> None:
        key = (values.pid, values.name, values.series)
        if key not in self._tracks:
            unit = (_UNIT, _UNITS[values.unit]) if values.unit in _UNITS else (_UNIT_NAME, values.unit)
            self._titles[key], self._order[key] = f"{values.name} {values.series}", _COUNTERS_BEHIND + len(self._tracks)
            self._describe(key, (_PARENT, 1 + self._tracks[values.pid,]), (_COUNTER_UNIT, message(unit)))
        self.write(value_packets(1 + self._tracks[key], values.moment, values.value))

    def _name(self, event: RawEvent) -> None:
        args, pid, key = event["args"], event["pid"], (event["pid"], event["tid"])
        if event["name"] == "process_name":
            self._titles[pid,] = args["name"]
        elif event["name"] == "thread_name":
            self._titles[key] = args["name"]
        elif event["name"] == "thread_sort_index":
            self._order[key] = args["sort_index"]

    def _describe(self, key: tuple[Any, ...], *more: tuple[int, int | bytes]) -> None:
        order = max(0, min(self._order.get(key, key[-1] if isinstance(key[-1], int) else 0), _MAX_RANK))
        name = self._titles.get(key, " ".join(map(str, key)))
        fields = (_UUID, 1 + self._tracks[key]), (_NAME, name), (_RANK, order), (_MERGING, _NO_MERGING)
        self._packet((_DESCRIPTOR, message(*fields, *more)))

    def _finish(self) -> None:
        """Write the tracks; those of counters are written before their values."""
        for key in [key for key in self._tracks if len(key) == _THREAD]:
            self._describe(key, (_PARENT, 1 + self._tracks[key[0],]))
        if on_process := self._titles.pop((PATH_PID, PATH_PID), ""):
            self._titles[PATH_PID,] = f"{self._titles.get((PATH_PID,), 'path')}: {on_process}"
        for key in [key for key in self._tracks if len(key) == _PROCESS]:
            self._describe(key, (_CHILDREN, _EXPLICIT))

    def _packet(self, *fields: tuple[int, int | bytes]) -> None:
        self._write(field(_PACKET, message(*fields, (_SEQUENCE_ID, SEQUENCE))))


def _ns(us: int | Decimal) -> int:
    return int(us * 1000)


def _in_time(slices: Slices) -> Slices:
    """Return slices in the order in which they begin, longer ones first: so those around others come before them."""
    return slices.rows(np.lexsort((-slices.duration, slices.start)))


def begin_packets(slices: Slices, tracks: Array, iids: Array, flows: Flows) -> tuple[Array, Array]:
    """Return the packets in which slices begin, and where each begins; those without duration end there, too."""
    columns = np.empty((len(slices), 6), np.int64)
    columns[:, 0], columns[:, 1] = np.maximum(slices.start, 0), slices.duration  # varints have no sign
    columns[:, 2] = tracks[slices.place]
    columns[:, 3] = iids[slices.name]
    columns[:, 4] = np.where(slices.category < 0, 0, iids[slices.category])
    columns[:, 5] = slices.args
    size = 2 * _HEAD_BYTES * len(slices) + int((slices.args & 0xFFFF_FFFF).sum())
    size += _FIXED_BYTES * int(flows[1][-1] - flows[1][0])
    out, starts = np.empty(size, np.uint8), np.zeros(len(slices) + 1, np.int64)
    _fill_begins(columns, writable(slices.source), flows, out, starts)
    return out[: starts[-1]], starts


def end_packets(track: Array, moment: Array) -> Array:
    r"""Return the packets in which slices end.

    Example:
        >>> end_packets(np.array([3]), np.array([200])).tobytes()
        b'\n\x0b@\xc8\x01P\x01Z\x04H\x02X\x03'
    """
    out = np.empty(_HEAD_BYTES * len(track), np.uint8)
    return out[: _fill_moments(track.astype(np.int64), moment, np.empty(0, np.int64), out)]


def value_packets(track: int, moment: Array, value: Array) -> Array:
    """Return the packets of a counter's values."""
    out = np.empty((_HEAD_BYTES + _FIXED_BYTES) * len(moment), np.uint8)
    bits = np.ascontiguousarray(value.astype("<f8")).view(np.int64)
    return out[: _fill_moments(np.full(len(moment), track), moment, bits, out)]


@njit(nogil=True)
def put_varint(out: Array, at: int, number: int) -> int:
    """Write a number that is not negative as a varint; return the position behind it."""
    while number >= 0x80:
        out[at] = (number & 0x7F) | 0x80
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@njit(nogil=True)
def varint_bytes(number: int) -> int:
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
    at = put_varint(out, at + 1, 1 + varint_bytes(moment) + 2 + 1 + varint_bytes(event_bytes) + event_bytes)
    out[at] = 0x40
    at = put_varint(out, at + 1, moment)
    out[at], out[at + 1], out[at + 2] = 0x50, SEQUENCE, 0x5A
    return put_varint(out, at + 3, event_bytes)


@njit(nogil=True)
def _put_on_track(out: Array, at: int, kind: int, track: int) -> int:
    """Write TrackEvent.type (9) and track_uuid (11)."""
    out[at], out[at + 1], out[at + 2] = 0x48, kind, 0x58
    return put_varint(out, at + 3, track)


@njit(nogil=True)
def _put_fixed(out: Array, at: int, number: int) -> int:
    """Write the 8 bytes of a number, the lowest first."""
    for shift in range(0, 64, 8):
        out[at] = (number >> shift) & 0xFF
        at += 1
    return at


@njit(nogil=True)
def _put_end(out: Array, at: int, track: int, moment: int) -> int:
    at = _put_head(out, at, moment, 3 + varint_bytes(track))
    return _put_on_track(out, at, _END, track)


@njit(cache=True, nogil=True)
def _fill_begins(columns: Array, source: Array, flows: Flows, out: Array, starts: Array) -> None:
    ids, first_id = flows
    at = 0
    for row in range(len(columns)):
        moment, duration, track, name, category, args = columns[row]
        length = args & 0xFFFF_FFFF
        annotation = 2 + 1 + varint_bytes(length) + length  # DebugAnnotation.name_iid (1), legacy_json_value (9)
        size = 3 + varint_bytes(track) + 1 + varint_bytes(name) + _FIXED_BYTES * (first_id[row + 1] - first_id[row])
        size += 1 + varint_bytes(category) if category else 0
        size += 1 + varint_bytes(annotation) + annotation if length else 0
        at = _put_head(out, at, moment, size)
        at = _put_on_track(out, at, _INSTANT if duration == NO_NUMBER else _BEGIN, track)
        out[at] = 0x50  # TrackEvent.name_iid (10)
        at = put_varint(out, at + 1, name)
        if category:
            out[at] = 0x18  # category_iids (3)
            at = put_varint(out, at + 1, category)
        if length:
            out[at] = 0x22  # debug_annotations (4)
            at = put_varint(out, at + 1, annotation)
            out[at], out[at + 1], out[at + 2] = 0x08, ARGS_IID, 0x4A
            at = put_varint(out, at + 3, length)
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
def _fill_moments(track: Array, moment: Array, bits: Array, out: Array) -> int:
    """Write the values of counters, or without their bits the ends of slices."""
    at = 0
    for row in range(len(track)):
        if not len(bits):
            at = _put_end(out, at, track[row], moment[row])
            continue
        at = _put_head(out, at, moment[row], 3 + varint_bytes(track[row]) + _FIXED_BYTES)
        at = _put_on_track(out, at, _COUNTER, track[row])
        out[at], out[at + 1] = 0xE1, 0x02  # double_counter_value (44)
        at = _put_fixed(out, at + 2, bits[row])
    return at


def varint(number: int) -> bytes:
    """Return a number that is not negative in groups of seven bits, the lowest first.

    Example:
        >>> varint(300).hex()
        'ac02'
    """
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def field(number: int, value: int | str | bytes) -> bytes:
    r"""Return a field of a message: a number, a text, or a message as bytes.

    Example:
        >>> field(2, "ab"), field(1, 5)
        (b'\x12\x02ab', b'\x08\x05')
    """
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    # Perfetto ends a text at its first NUL
    data = value.replace("\0", "␀").encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    r"""Return a message of some fields: numbers and values.

    Example:
        >>> message((1, 5), (2, "ab"))
        b'\x08\x05\x12\x02ab'
    """
    return b"".join(field(number, value) for number, value in fields)
