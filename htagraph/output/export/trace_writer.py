"""Trace files as JSON: slices and counters of a scene as text, and copies of files with events changed or added.

Rows of numbers and pieces of text become one text by a compiled pass. Of a copied file, what can be read is written:
`reading` repairs and reports damage as it does for `htagraph.load`. Numbers with a fraction are exact decimals from
file to file, so no timestamp moves by a nanosecond.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints
from htagraph.core.compiled import njit
from htagraph.core.errors import Issue, IssueLog
from htagraph.output.scene import NO_NUMBER, Slices, Values
from htagraph.output.whole_files import OutputFile
from htagraph.trace.kineto.decode import event_decoder, event_text_decoder, split
from htagraph.trace.kineto.read import EXPORTED_KEY
from htagraph.trace.kineto.scan.grammar import byte, put, word
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.remote import TracePath, path_of

__all__ = [
    "AT_ONCE", "FOR_VIEWING", "INTEGER", "MICROSECONDS", "SPAN", "Column", "RawEvent", "TextRows", "TraceWriter",
    "edit_trace", "metadata", "put_text", "readable", "row_texts", "slice_rows", "us", "writable",
]  # fmt: skip

RawEvent: TypeAlias = dict[str, Any]
Edit: TypeAlias = Callable[[RawEvent], "RawEvent | Iterable[RawEvent] | None"]

FOR_VIEWING: Final = {EXPORTED_KEY: {"made_for": "viewing"}}
"""Root key of copies made for viewing: `htagraph.load` of a folder skips them and reads the recorded files."""
_LAST_BACKSLASH = re.compile(rb'(?<!\\)((?:\\\\)+)(?=")')
AT_ONCE = 1 << 16
"""Events or rows that are made or written together. Chosen: some MB of memory; no answer depends on it."""
SEPARATOR: Final = b",\n"
"""What stands behind each row."""
_TEXT, SPAN, MICROSECONDS, INTEGER = range(4)
"""Kinds of columns: of texts; of spans of the source (start · 2³² + length); of times in ns, written as the µs of a
trace file; and of whole numbers. `NO_NUMBER` is written as nothing."""
Column: TypeAlias = "bytes | tuple[bytes | Sequence[bytes] | int, Array]"
"""What all rows have at one place: a text; a text and which rows have it; texts and which of them each row has (-1 for
none); or a kind and a value per row."""
_NUMBER_BYTES: Final = 24
"""Bytes that a number takes at most: 19 digits, a sign, a point and a zero before it."""


def edit_trace(
    source: str | PathLike[str],
    target: str | Path,
    edit: Edit | None = None,
    extra: Iterable[RawEvent] = (),
    header: dict[str, Any] | None = None,
) -> tuple[Issue, ...]:
    """Write a copy of a trace file with its events changed and others added; the root keys are kept.

    The file is read in blocks and never held whole. `target` appears once it is complete.

    Args:
        source: a Kineto trace, JSON or gzipped JSON; a bare list of events becomes an object with ``traceEvents``.
        target: where to write, gzipped if it ends in ``.gz``; its folder is made. Never the source itself.
        edit: called with each event in the file's order, so that the n-th call gets the event that ``activities.event``
            numbers n. Returns the event to write (it may change and return the one it got), or several, or None for
            none. Numbers with a fraction are `decimal.Decimal`. Without it events are copied as text.
        extra: events to write behind the others; times in µs, see `us`.
        header: root keys to add to those of the source, or to write in their place.

    Returns:
        What was repaired or lost on reading, as in ``graph.issues``.

    Raises:
        TraceError: the source is no trace, or the target is the source or cannot be written.

    Example:
        >>> import tempfile, pathlib, htagraph as hg
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "out" / "copy.json.gz"
        >>> mark = {"ph": "i", "name": "here", "pid": 0, "tid": 0, "ts": us(1_500), "s": "g"}
        >>> edit_trace("data/demo/rank-0.json.gz", target, extra=[mark])
        ()
    """
    path = path_of(source)
    log, root_keys = IssueLog(str(path)), dict[str, Any]()
    decoder: Any = event_decoder() if edit else event_text_decoder()
    with TraceWriter(target, sources=[path]) as writer:
        for _, block in split(iter_bytes(path, log), decoder, root_keys, log):
            writer.begin(root_keys | (header or {}))
            writer.add_texts(_each(block, edit) if edit else block)
            del block  # see split: before the next one
        writer.add(extra)
        writer.end(root_keys | (header or {}))
    return log.issues()


def us(nanoseconds: int) -> int | Decimal:
    """Return ns as the µs of a trace file, exactly.

    Example:
        >>> us(1_711_900_000_000_012_345_678), us(2_000), us(-1)
        (Decimal('1711900000000012345.678'), 2, Decimal('-0.001'))
    """
    whole, rest = divmod(int(nanoseconds), 1000)
    return Decimal(int(nanoseconds)).scaleb(-3) if rest else whole


def metadata(what: str, pid: int, tid: int, **args: str | int) -> RawEvent:
    """Return the event that names or orders a process or a track.

    Example:
        >>> metadata("thread_name", 1, 2, name="main")
        {'ph': 'M', 'name': 'thread_name', 'pid': 1, 'tid': 2, 'args': {'name': 'main'}}
    """
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def readable(text: bytes) -> bytes:
    """Return JSON with a blank behind each text that ends in a backslash, or Perfetto cannot read it."""
    return _LAST_BACKSLASH.sub(rb"\1 ", text) if b'\\\\"' in text else text


class TraceWriter(OutputFile):
    """Writes a trace file event by event: a context manager; the file appears at its place when it is complete.

    Example:
        >>> import json, pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "trace.json"
        >>> with TraceWriter(target) as writer:
        ...     writer.add([{"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": us(2_001), "dur": 1}])
        >>> json.loads(target.read_text())["traceEvents"][0]["ts"]
        2.001
    """

    def __init__(self, target: str | Path, *, sources: Iterable[TracePath] = ()) -> None:
        super().__init__(target, sources=sources)
        self.count = 0
        """Events written so far."""
        self._header: dict[str, Any] | None = None
        self._rest: dict[str, Any] = {}
        self._encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_plain).encode

    def begin(self, header: dict[str, Any]) -> None:
        """Write the root keys that stand before the events; only the first call counts."""
        if self._header is None:
            self._header = dict(header)
            keys = [self._encode(key) + b": " + self._encode(value) for key, value in header.items()]
            self._write(b"{\n" + b"".join(key + SEPARATOR for key in keys) + b'"traceEvents": [\n')

    def end(self, header: dict[str, Any]) -> None:
        """Write the root keys that are not in the header yet after the events."""
        self._rest = dict(header)

    def add(self, events: Iterable[RawEvent | Slices | Values | TextRows]) -> None:
        """Write events; a text that ends in a backslash gets a blank, or Perfetto cannot read it."""
        for are_dicts, some in groupby(events, lambda event: isinstance(event, dict)):
            if are_dicts:
                self.add_texts(readable(self._encode(event)) for event in some)
                continue
            for part in some:
                rows: Any = slice_rows(part) if isinstance(part, Slices) else part
                rows = value_rows(part) if isinstance(part, Values) else rows
                if len(rows):
                    self.begin({})
                    self._write(SEPARATOR if self.count else b"")
                    self._write(rows.joined)
                    self.count += len(rows)

    def add_texts(self, texts: Iterable[Any]) -> None:
        """Write events given as JSON, or as dicts."""
        self.begin({})
        left = iter(texts)
        while some := list(islice(left, AT_ONCE)):
            block = [text if isinstance(text, bytes | msgspec.Raw) else self._encode(text) for text in some]
            self._write((SEPARATOR if self.count else b"") + SEPARATOR.join(block))
            self.count += len(block)

    def _finish(self) -> None:
        self.begin(self._rest)
        rest = {key: value for key, value in self._rest.items() if key not in (self._header or {})}
        texts = [SEPARATOR + self._encode(key) + b": " + self._encode(value) for key, value in rest.items()]
        self._write(b"\n]" + b"".join(texts) + b"\n}\n")


def _each(block: list[RawEvent], edit: Edit) -> Iterator[RawEvent]:
    for event in block:
        changed = edit(event)
        if isinstance(changed, dict):
            yield changed
        elif changed is not None:
            yield from changed


def _plain(value: object) -> object:
    if hasattr(value, "item"):
        return value.item()
    msg = f"{type(value).__name__} cannot be written as JSON"
    raise TypeError(msg)


def slice_rows(slices: Slices) -> TextRows:
    """Return slices and instants as JSON of a trace file.

    Example:
        >>> columns = (np.array([each]) for each in (0, 1_500, 7, 0, 1, 0))
        >>> bytes(slice_rows(Slices([(1, 2)], ["a", "b"], *columns, np.zeros(0, np.uint8))).joined)
        b'{"ph":"X","pid":1,"tid":2,"name":"a","ts":1.500,"dur":0.007,"cat":"b"}'
    """
    places = [b'"pid":%d,"tid":%d' % place for place in slices.places]
    texts = [readable(msgspec.json.encode(text)) for text in slices.texts]
    lasts = slices.duration != NO_NUMBER
    more = np.zeros(len(slices), np.int64) if slices.more is None else slices.more
    columns: tuple[Column, ...] = (
        (b'{"ph":"X",', lasts), (b'{"ph":"i",', ~lasts), (places, slices.place),
        b',"name":', (texts, slices.name), b',"ts":', (MICROSECONDS, slices.start),
        (b',"dur":', lasts), (MICROSECONDS, slices.duration),
        (b',"cat":', slices.category >= 0), (texts, slices.category),
        (b',"args":', slices.args != 0), (SPAN, slices.args), (SPAN, more), b"}",
    )  # fmt: skip
    return row_texts(columns, len(slices), slices.source)


def value_rows(values: Values) -> TextRows:
    """Return a counter's values as JSON of a trace file.

    Example:
        >>> from htagraph.output.scene import COUNT
        >>> bytes(value_rows(Values(7, "queue length", "stream 1", COUNT, np.array([2_000]), np.array([3]))).joined)
        b'{"ph":"C","pid":7,"name":"queue length","ts":2,"args":{"stream 1":3}}'
    """
    encode = msgspec.json.encode
    head = b'{"ph":"C","pid":%d,"name":%b,"ts":' % (values.pid, readable(encode(values.name)))
    between = b',"args":{%b:' % readable(encode(values.series))
    known, which = np.unique(values.value, return_inverse=True)
    form = "%d" if np.issubdtype(known.dtype, np.integer) else "%.6f"
    numbers = [(form % each).encode() for each in known.tolist()]
    return row_texts((head, (MICROSECONDS, values.moment), between, (numbers, which), b"}}"), len(values))


@dataclass(frozen=True, eq=False)
class TextRows:
    """Texts of rows with a `SEPARATOR` behind each."""

    text: npt.NDArray[np.uint8]
    starts: Ints
    """Where each row begins in `text`, and where the last one ends."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def spans(self) -> Ints:
        """Where each row is in `text`, as a span: start · 2³² + length, without the separator."""
        return (self.starts[:-1] << 32) | (np.diff(self.starts) - len(SEPARATOR))

    @property
    def joined(self) -> memoryview:
        """The rows with separators between them."""
        return self.text[self.starts[0] : max(self.starts[-1] - len(SEPARATOR), self.starts[0])].data


def row_texts(columns: Sequence[Column], count: int, source: Array | None = None) -> TextRows:
    r"""Return the text of each row: its columns from left to right; `source` has the bytes that spans refer to.

    Example:
        >>> bytes(row_texts((b"at ", (MICROSECONDS, np.array([1_500, 2_000, -7]))), 3).joined)
        b'at 1.500,\nat 2,\nat -0.007'
    """
    values, kinds = np.empty((count, len(columns) + 1), np.int64), np.zeros(len(columns) + 1, np.int64)
    texts: list[bytes] = []
    for at, column in enumerate((*columns, SEPARATOR)):
        what, value = (column, np.ones(1, np.bool_)) if isinstance(column, bytes) else column
        if isinstance(what, int):
            kinds[at], values[:, at] = what, value
            continue
        which = np.where(value, 0, -1) if isinstance(what, bytes) else value
        values[:, at] = np.where(which < 0, -1, which + len(texts))
        texts += [what] if isinstance(what, bytes) else what
    bounds = np.concatenate(([0], np.cumsum([len(text) for text in texts], dtype=np.int64)))
    size = sum(_size(kind, values[:, at], bounds) for at, kind in enumerate(kinds.tolist()))
    out, starts = np.empty(size, np.uint8), np.zeros(count + 1, np.int64)
    known = np.frombuffer(b"".join(texts), np.uint8)
    _fill(kinds, values, (known, bounds), writable(np.empty(0, np.uint8) if source is None else source), out, starts)
    return TextRows(out, starts)


def writable(text: Array) -> Array:
    """Return a text that could be written, copied if it could not: passes are compiled anew for every kind of array."""
    return text if text.flags.writeable else text.copy()


def _size(kind: int, values: Array, bounds: Array) -> int:
    if kind == _TEXT:
        return int(np.diff(bounds)[values[values >= 0]].sum())
    if kind == SPAN:
        return int((values & (2**32 - 1)).sum())
    return _NUMBER_BYTES * len(values)


@njit(cache=True, nogil=True)
def _fill(kinds: Array, values: Array, texts: tuple[Array, Array], source: Array, out: Array, starts: Array) -> None:
    at, known, given = 0, texts[0].ctypes.data, source.ctypes.data
    for row in range(len(values)):
        for column in range(len(kinds)):
            kind, value = kinds[column], values[row, column]
            if kind == _TEXT:
                if value >= 0:
                    at = put_text(out, at, known + texts[1][value], texts[1][value + 1] - texts[1][value])
            elif kind == SPAN:
                at = put_text(out, at, given + (value >> 32), value & 0xFFFF_FFFF)
            elif value != NO_NUMBER:
                if value < 0:
                    out[at] = 45  # a minus
                    at += 1
                at = _put_number(out, at, abs(value), 1000 if kind == MICROSECONDS else 1)
        starts[row + 1] = at


@njit(nogil=True)
def put_text(out: Array, at: int, first: int, length: int) -> int:
    """Write the bytes at an address, eight at once; return the position behind them. Slices of arrays take longer."""
    for part in range(0, length - 7, 8):
        put(out.ctypes.data + at + part, np.int64(word(first + part)))
    for part in range(length & ~7, length):
        out[at + part] = byte(first + part)
    return at + length


@njit(nogil=True)
def _put_number(out: Array, at: int, number: int, parts: int) -> int:
    """Write a number that is not negative, given in thousandths or as it is; return the position behind it."""
    thousandths = number % parts
    whole, digits, rest = number // parts, 1, 10
    while digits < 19 and whole >= rest:
        digits, rest = digits + 1, rest * 10
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = 48 + whole % 10  # a digit
        whole //= 10
    at += digits
    if thousandths:
        out[at], out[at + 1] = 46, 48 + thousandths // 100  # a point, a digit
        out[at + 2], out[at + 3] = 48 + thousandths // 10 % 10, 48 + thousandths % 10
        at += 4
    return at
