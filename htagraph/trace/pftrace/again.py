"""Events read again: single events, and arguments that no column holds, by Kineto's keys."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.errors import IssueLog, TraceError
from htagraph.core.tables import described
from htagraph.trace.columns import CHECKED, Trace
from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.kineto.events import Event, canonical_category
from htagraph.trace.kineto.read import checked, parsed
from htagraph.trace.pftrace import scan, wire
from htagraph.trace.pftrace.argument_columns import KEY_OF, plain_numbers
from htagraph.trace.pftrace.events import event_rows
from htagraph.trace.pftrace.labels import Labels
from htagraph.trace.pftrace.messages import Message, UnreadableError, argument_of, fields, signed, text_of
from htagraph.trace.pftrace.packets import ANNOTATION_NAMES, ARGUMENT_NAMES, TEXT_VALUES, packets_of, text_of_file
from htagraph.trace.pftrace.spans import DEVICE_KEYS, SYNC_KIND, lanes_of, numbers_of_events, spans_of
from htagraph.trace.remote import TracePath, path_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "arguments",
    "category_arguments",
    "check_arguments",
    "event",
]

_US: Final = Decimal(1000)
"""ns per µs."""
_PHASES: Final = {
    scan.BEGIN: "X",
    scan.DEVICE_WORK: "X",
    scan.INSTANT: "i",
    scan.COUNTER: "C",
}
_BLOCK: Final = 4096
"""Events whose arguments are checked at once. Chosen: they take some MB. Doubled, that memory doubles."""


class _Again:
    """The events of a file, to be read one by one."""

    def __init__(self, path: TracePath) -> None:
        log = IssueLog(str(path))
        self._packets = packets_of(text_of_file(path, log), log)
        self._events = event_rows(self._packets, {SYNC_KIND, *DEVICE_KEYS})
        spans = spans_of(self._packets, self._events, log)
        number = numbers_of_events(self._events)
        self._row = np.flatnonzero(number >= 0)
        self._start, _ = self._packets.times(self._events.body)
        self._duration = np.zeros(len(number), np.int64)
        self._duration[spans.row] = spans.duration
        self._is_sync = plain_numbers(self._events, SYNC_KIND) >= 0

    def __len__(self) -> int:
        return len(self._row)

    @property
    def size(self) -> int:
        """Bytes in memory, nearly."""
        packets = self._packets
        return packets.text.nbytes + packets.bodies.nbytes + self._events.columns.nbytes

    def categories(self) -> list[str]:
        """Return the category of each event."""
        labels = self._labels()
        is_sync = self._is_sync[self._row]
        codes = labels.categories(self._row, is_sync)
        names = list(labels.into.categories)
        return [names[code] for code in codes.tolist()]

    def arguments(self, number: int) -> dict[str, Any]:
        """Return the arguments of an event, by Kineto's keys; none of one that is damaged."""
        row = self._row[number]
        body = int(self._events.body[row])
        message = self._packets.message(body)
        is_stage = self._packets.bodies[body, wire.KIND] == scan.STAGE_EVENT
        read = self._of_stage if is_stage else self._of_slice
        try:
            return read(message, body)
        except UnreadableError:
            return {}

    def raw(self, numbers: Ints) -> Iterator[dict[str, Any]]:
        """Yield events as Kineto's files have them, with times as in the file, µs."""
        rows = self._row[numbers]
        is_sync = self._is_sync[rows]
        labels = self._labels()
        columns = [
            labels.names(rows),
            labels.categories(rows, is_sync),
            lanes_of(labels, rows, is_sync),
        ]
        names = list(labels.into.names)
        categories = list(labels.into.categories)
        lanes = list(labels.into.lanes.lanes)
        for (
            number,
            row,
            name,
            category,
            lane,
        ) in zip(
            numbers.tolist(),
            rows.tolist(),
            *columns,
            strict=True,
        ):
            pid, tid = lanes[lane]
            yield {
                "ph": _PHASES[int(self._events.columns[scan.TYPE, row])],
                "name": names[name],
                "cat": categories[category],
                "pid": pid,
                "tid": tid,
                "ts": int(self._start[row]) / _US,
                "dur": int(self._duration[row]) / _US,
                "args": self.arguments(number),
            }

    def _labels(self) -> Labels:
        log = IssueLog("")  # problems of the file were reported when it was loaded
        return Labels(
            self._packets,
            self._events,
            Columns(log),
            log,
        )

    def _of_slice(
        self,
        message: Message,
        body: int,
    ) -> dict[str, Any]:
        """Return the arguments of a track event."""
        texts = self._packets.interned_at(body, TEXT_VALUES)
        names = self._packets.interned_at(body, ANNOTATION_NAMES)
        annotations = (field.content for field in fields(message) if field.number == _ANNOTATION)
        return dict(argument_of(annotation, texts, names) for annotation in annotations)

    def _of_stage(
        self,
        message: Message,
        body: int,
    ) -> dict[str, Any]:
        """Return the arguments of a stage."""
        names = self._packets.interned_at(body, ARGUMENT_NAMES)
        return _arguments_of_stage(message, names)


_ANNOTATION: Final = 4
"""Number of the field of arguments of a track event."""
_EXTRA: Final = 6
"""Number of the field of arguments of a stage."""
_LAUNCH: Final = 21
"""Number of the field of the launch of a stage."""
_GRID, _BLOCK_SIZE, _LAUNCH_ARGUMENT = range(1, 4)


def _arguments_of_stage(message: Message, names: dict[int, str]) -> dict[str, Any]:
    out = dict[str, Any]()
    for field in fields(message):
        if field.number == _EXTRA:
            texts = {inner.number: text_of(inner.content) for inner in fields(field.content)}
            key = texts.get(1, "")
            out[KEY_OF.get(key, key)] = _plain(texts.get(2, ""))
        elif field.number == _LAUNCH:
            out |= _launch(field.content, names)
    return out


def _launch(message: Message, names: dict[int, str]) -> dict[str, Any]:
    """Return the arguments in the launch of a kernel."""
    out = dict[str, Any]()
    for field in fields(message):
        if field.number in (_GRID, _BLOCK_SIZE):
            sizes = {inner.number: inner.value for inner in fields(field.content)}
            out["grid" if field.number == _GRID else "block"] = [sizes.get(axis, 1) for axis in (1, 2, 3)]
        elif field.number == _LAUNCH_ARGUMENT:
            key, value = _launch_argument(field.content, names)
            out[KEY_OF.get(key, key)] = value
    return out


def _launch_argument(
    message: Message,
    names: dict[int, str],
) -> tuple[str, Any]:
    """Return the name and the value of an argument of a launch."""
    name = ""
    value: Any = None
    for field in fields(message):
        if field.number == 1:
            name = names.get(field.value, "")
        elif field.number == 2:
            name = text_of(field.content)
        else:
            value = _number(field)
    return name, value


def _number(inner: Any) -> Any:  # noqa: ANN401 - a field of a message
    """Return the value of a launch's argument: int, uint, double or text."""
    if inner.number == 5:
        return struct.unpack("<d", inner.content)[0]
    if inner.number == 6:
        return text_of(inner.content)
    return signed(inner.value) if inner.number == 3 else inner.value


def _plain(text: str) -> Any:  # noqa: ANN401 - a number or a text
    """Return the number that a text is, or the text; as the compiled scan does."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= scan.MOST_DIGITS
    return int(text) if is_number and str(int(text)) == text else text


_MOST_KEPT_BYTES: Final = 256 << 20
"""Bytes of the file that was read last, which are kept for its other events. Chosen: short recordings take less.
Doubled, so does the memory."""
_READ_LAST: Final = WeakKeyDictionary[Trace, _Again]()
"""The events of the file that was read last, by its trace."""


def _again_of(trace: Trace) -> _Again:
    """Return the events of a trace's file, which stays in memory until another one is read, if it is not too large."""
    path = trace.unchanged_path()
    again = _READ_LAST.get(trace)
    if again is None:
        again = _Again(path)
        _READ_LAST.clear()
        if again.size <= _MOST_KEPT_BYTES:
            _READ_LAST[trace] = again
    return again


def event(trace: Trace, index: int) -> Event:
    """Return the event at a position among the events of a file, as its model."""
    path = trace.path
    again = _again_of(trace)
    if not 0 <= index < len(again):
        msg = f"{path}: has no event {index}; was the file changed since it was loaded?"
        raise TraceError(msg)
    raw = next(again.raw(np.array([index])))
    return parsed(raw, index, path)


def arguments(
    path: TracePath,
    names: Sequence[str],
    events: Array,
    *,
    as_text: bool,
) -> dict[str, Array]:
    """Return some arguments of some events, each as an array of objects.

    Args:
        path: the file.
        names: Kineto's keys of the arguments.
        events: positions among the events of the file.
        as_text: whether values are given as JSON (bytes).
    """
    again = _Again(path)
    out = {name: np.full(len(events), None, object) for name in names}
    for place, number in enumerate(events.tolist()):
        args = again.arguments(number)
        for name in names:
            value = args.get(name)
            out[name][place] = json.dumps(value).encode() if as_text and value is not None else value
    return out


def category_arguments(path: TracePath, category: str | None = None) -> pd.DataFrame:
    """Return every argument of the events of a category, or of all: one row per event, indexed by its position."""
    import pandas as pd  # takes a moment to load, and single events do without

    again = _Again(path)
    labels = again.categories()
    positions = [place for place, name in enumerate(labels) if category in (None, canonical_category(name))]
    rows = [again.arguments(place) for place in positions]
    return pd.DataFrame(
        rows,
        index=pd.Index(positions, dtype="int64", name="event"),
        dtype=object,
    )


@described(CHECKED)
def check_arguments(
    path: str | PathLike[str],
) -> pd.DataFrame:
    """Return every argument that the events of a file have, and how many values of each argument have another type.

    Returns:
        One row per category and argument: {columns}.
    """
    return checked(_blocks(_Again(path_of(path))))


def _blocks(
    again: _Again,
) -> Iterable[Iterator[dict[str, Any]]]:
    for first in range(0, len(again), _BLOCK):
        yield again.raw(
            np.arange(
                first,
                min(first + _BLOCK, len(again)),
            )
        )
