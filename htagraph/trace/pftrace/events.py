"""Packets → rows of track events and of stages of a device, with their arguments as far as columns hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, coded
from htagraph.trace.kineto.scan.grammar import rows_address, text_address, with_padding
from htagraph.trace.kineto.scan.scanner import TokenTable
from htagraph.trace.pftrace import scan, wire
from htagraph.trace.pftrace.messages import text_of
from htagraph.trace.pftrace.packets import ANNOTATION_NAMES, TEXT_VALUES, Packets

__all__ = ["Notes", "PacketEvents", "event_rows"]

_CHUNK_BYTES: Final = 8 << 20
"""Bytes of bodies that are scanned at once. Chosen: rows for their arguments take at most 20 times as much memory, of
which files fill a fifth. Doubled, that memory doubles."""


class Notes(NamedTuple):
    """Arguments that were asked for, one row each, in the order of the file."""

    event: Ints
    """Row of the event."""
    key: Ints
    """Index into `PacketEvents.texts`."""
    form: Ints
    """The form of the value, see `scan`."""
    value: Ints
    """The value; of a text its index into `PacketEvents.texts`."""


@dataclass(frozen=True, eq=False)
class PacketEvents:
    """Events of tracks and stages of a device, one row each, in the order of the file."""

    body: Ints
    """Index into the bodies of the file."""
    columns: Ints
    """One array per column, see `scan`; names and categories are indices into `texts`, 0 for none."""
    notes: Notes
    waiting: Ints
    """Row of a stage that waited for another one."""
    awaited: Ints
    """The id of the stage that it waited for."""
    texts: list[str]
    """Distinct texts in events; the first one is empty."""
    raw: Callable[[int], bytes]
    """Returns the bytes of a text, given its index."""


class _Chunk(NamedTuple):
    """The arguments and waits that a scan of some bodies gives."""

    notes: Ints
    waits: Ints


def event_rows(packets: Packets, wanted: Collection[str]) -> PacketEvents:
    """Return the events of a file, with arguments whose keys are `wanted`."""
    body = packets.event_bodies
    texts = _TextNumbers(packets, wanted)
    columns = np.empty((scan.EVENT_WIDTH, len(body)), np.int64)
    chunks = [_nothing()]
    for first, behind in _chunks(packets.bodies[body]):
        chunk = _scanned(
            packets,
            body[first:behind],
            texts,
            columns[:, first:behind],
        )
        chunk.notes[scan.NOTED] += first
        chunk.waits[0] += first
        chunks.append(chunk)
    notes = np.concatenate([chunk.notes for chunk in chunks], axis=1)
    waiting, awaited = np.concatenate([chunk.waits for chunk in chunks], axis=1)
    return PacketEvents(
        body,
        columns,
        Notes(*notes),
        waiting,
        awaited,
        texts.all(),
        texts.raw,
    )


def _nothing() -> _Chunk:
    return _Chunk(
        np.zeros((scan.NOTE_WIDTH, 0), np.int64),
        np.zeros((scan.WAIT_WIDTH, 0), np.int64),
    )


def _chunks(
    bodies: Ints,
) -> Iterator[tuple[int, int]]:
    """Yield (first, behind the last) of bodies that are scanned at once; they ascend in the file."""
    first = 0
    while first < len(bodies):
        most = bodies[first, wire.START] + _CHUNK_BYTES
        behind = int(
            np.searchsorted(
                bodies[:, wire.STOP],
                most,
                side="right",
            )
        )
        behind = max(behind, first + 1)
        yield first, behind
        first = behind


def _scanned(
    packets: Packets,
    body: Ints,
    texts: _TextNumbers,
    columns: Ints,
) -> _Chunk:
    """Fill the columns of some bodies; positions of texts are replaced by indices."""
    bodies = np.ascontiguousarray(packets.bodies[body])
    origin = int(bodies[0, wire.START])
    bodies[:, [wire.START, wire.STOP]] -= origin
    size = int((bodies[:, wire.STOP] - bodies[:, wire.START]).sum())
    base = text_address(packets.text) + origin
    rows = np.empty((len(bodies), scan.EVENT_WIDTH), np.int64)
    notes = np.empty((size // 2 + 1, scan.NOTE_WIDTH), np.int64)
    stages = bodies[:, wire.KIND] == scan.STAGE_EVENT
    stage_size = int((bodies[stages, wire.STOP] - bodies[stages, wire.START]).sum())
    waits = np.empty((stage_size + 1, scan.WAIT_WIDTH), np.int64)
    tables = [rows_address(table) for table in (rows, notes, waits)]
    noted, waited = scan.scan_events(
        base,
        (rows_address(bodies), len(bodies)),
        *tables,
    )
    columns[:] = rows.T
    for column in (scan.NAME, scan.CATEGORY):
        columns[column] = texts.numbers(base, columns[column])
    kept = texts.wanted_notes(base, notes[:noted], packets.state[body])
    return _Chunk(
        kept,
        np.ascontiguousarray(waits[:waited].T),
    )


class _TextNumbers:
    """Numbers the texts in events, and decides which arguments are kept."""

    def __init__(
        self,
        packets: Packets,
        wanted: Collection[str],
    ) -> None:
        self._packets = packets
        self._wanted = wanted
        self._table = TokenTable()
        self._decoded = [""]
        self._is_wanted = np.zeros(1, np.bool_)

    def all(self) -> list[str]:
        """Return the texts."""
        new = range(len(self._decoded), len(self._table))
        self._decoded += [text_of(self._table.text(number)) for number in new]
        return self._decoded

    def raw(self, number: int) -> bytes:
        """Return the bytes of a text."""
        return self._table.text(number)

    def numbers(self, base: int, spans: Array) -> Ints:
        """Return the index of each span's text."""
        if not spans.any():
            return np.zeros(len(spans), np.int64)
        return self._table.numbers(base, np.ascontiguousarray(spans)).astype(np.int64)

    def wanted_notes(self, base: int, notes: Ints, state: Ints) -> Ints:
        """Return the arguments that are kept, one array per column; `state` is that of each event."""
        key = notes[:, scan.KEY]
        number = self.numbers(base, np.maximum(key, 0))
        by_iid = np.flatnonzero(key < 0)
        number[by_iid] = self._of_interned(
            state[notes[by_iid, scan.NOTED]],
            -1 - key[by_iid],
            ANNOTATION_NAMES,
        )
        kept = self._wanted_keys()[number]
        columns = np.stack([column[kept] for column in notes.T])
        columns[scan.KEY] = number[kept]
        form = columns[scan.FORM]
        value = columns[scan.VALUE]
        spans = np.flatnonzero((form == scan.TEXT) | (form == scan.RAW))
        value[spans] = self.numbers(base, value[spans])
        by_iid = np.flatnonzero(form == scan.TEXT_IID)
        value[by_iid] = self._of_interned(
            state[columns[scan.NOTED, by_iid]],
            value[by_iid],
            TEXT_VALUES,
        )
        form[by_iid] = scan.TEXT
        return columns

    def _wanted_keys(self) -> Mask:
        """Return by index of a text whether arguments with this key are kept."""
        texts = self.all()
        new = [text in self._wanted for text in texts[len(self._is_wanted) :]]
        self._is_wanted = np.append(self._is_wanted, np.array(new, np.bool_))
        return self._is_wanted

    def _of_interned(self, state: Ints, iid: Ints, kind: int) -> Ints:
        """Return the index of each interned text."""
        if not len(iid):
            return np.zeros(0, np.int64)
        _, first, member = np.unique(
            coded(state, iid),
            return_index=True,
            return_inverse=True,
        )
        pairs = zip(
            state[first].tolist(),
            iid[first].tolist(),
            strict=True,
        )
        texts = [self._packets.interned.get((number, kind), {}).get(name, "").encode() for number, name in pairs]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        joined = with_padding(b"".join(texts))
        numbers = self.numbers(
            text_address(joined),
            ends[:-1] << 32 | np.diff(ends),
        )
        return numbers[member.ravel()]
