"""Where each event lies in a text: for who wants few of the events of a large file, or only their text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.trace.reading.salvage import UNDECODABLE
from htagraph.trace.reading.scan.events import ARGUMENT_WIDTH, OFFSET, ROW_WIDTH, SCANNED, SPAN, STOP, scan_events
from htagraph.trace.reading.scan.grammar import PADDING
from htagraph.trace.reading.scan.keys import MAX_KEYS
from htagraph.trace.reading.scan.scanner import room_for, scan_tables, span_text

__all__ = ["EventTextScanner", "EventTexts"]


@dataclass(frozen=True, eq=False)
class EventTexts:
    """The events of a text, each as the JSON that it is."""

    text: bytes
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Number of events."""
        return len(self.starts)

    def __getitem__(self, event: int) -> bytes:
        """Return the text of an event."""
        return self.text[self.starts[event] : self.stops[event]]


class EventTextScanner:
    """Finds the events of the texts of one file, one text after the other."""

    def __init__(self) -> None:
        self._rows, self._args = np.empty((0, ROW_WIDTH), np.int64), np.empty((0, ARGUMENT_WIDTH), np.int64)

    def __call__(self, part: bytes | memoryview, offset: int) -> EventTexts | None:
        """Return the events of a text that holds events with commas between them, numbered as in bulk decoding.

        None for a text that bulk decoding might refuse: it must go through the general decoder.

        Args:
            part: the text.
            offset: its position in the document; not used.
        """
        del offset
        text = bytes(part)
        room = room_for(len(text))
        if room is None or b"\\u" in text or not _is_utf8(text):  # half a surrogate pair, or text that is repaired
            return None
        if len(self._rows) < room[0]:  # kept, because new memory costs as much as the scan
            self._rows = np.empty((room[0], ROW_WIDTH), np.int64)
            self._args = np.empty((room[1] + MAX_KEYS, ARGUMENT_WIDTH), np.int64)
        padded, tables = np.frombuffer(text + PADDING, np.uint8), scan_tables(calls=False)
        result, events, used = scan_events(
            (padded.ctypes.data, len(text)), (tables[0].ctypes.data, tables[1].ctypes.data),
            (self._rows.ctypes.data, len(self._rows)), (self._args.ctypes.data, len(self._args)), 1,
        )  # fmt: skip
        odd = np.flatnonzero(self._args[:used, 1] >= SPAN)  # values that are not of their columns' types
        if result != SCANNED or not all(
            map(_is_readable, map(partial(span_text, padded), self._args[odd, 2].tolist()))
        ):
            return None
        return EventTexts(text, self._rows[:events, OFFSET].copy(), self._rows[:events, STOP].copy())


def _is_readable(value: bytes) -> bool:
    try:
        msgspec.json.decode(value)
    except UNDECODABLE:
        return False
    return True


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False
