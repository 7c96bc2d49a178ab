"""Copies of trace files with events changed or added: raw events as dicts, block by block.

What can be read is written: `reading` repairs and reports damage as it does for `htagraph.load`. Numbers with a
fraction are exact decimals from file to file, so no timestamp moves by a nanosecond.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from htagraph.core.issues import Issue, IssueLog
from htagraph.output.export.output_file import OutputFile
from htagraph.output.export.rows import SEPARATOR, Rows
from htagraph.trace.kineto.decode import event_decoder, event_text_decoder
from htagraph.trace.kineto.read import EXPORTED_KEY
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.kineto.split import split
from htagraph.trace.remote import TracePath, path_of

__all__ = ["FOR_VIEWING", "Edit", "RawEvent", "TraceWriter", "edit_trace", "metadata", "raw_blocks", "readable", "us"]

RawEvent: TypeAlias = dict[str, Any]
Edit: TypeAlias = Callable[[RawEvent], "RawEvent | Iterable[RawEvent] | None"]

FOR_VIEWING: Final = {EXPORTED_KEY: {"made_for": "viewing"}}
"""Root key of copies made for viewing: `htagraph.load` of a folder skips them and reads the recorded files."""
_BACKSLASH = rb"\\" + b'"'
_LAST_BACKSLASH = re.compile(rb'(?<!\\)((?:\\\\)+)(?=")')
_EVENTS_AT_ONCE = 1 << 14
"""Events that are encoded together; chosen: some MB of memory. Doubled, twice the memory, and no faster."""


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
    blocks = _edited(raw_blocks(path, root_keys, log), edit) if edit else _copied(path, root_keys, log)
    with TraceWriter(target, sources=[path]) as writer:
        for block in blocks:
            writer.begin(root_keys | (header or {}))
            writer.add_texts(block)
        writer.add(extra)
        writer.end(root_keys | (header or {}))
    return log.issues()


def raw_blocks(source: TracePath, header: dict[str, Any], log: IssueLog) -> Iterator[list[RawEvent]]:
    """Yield the events of a trace file as dicts, block by block; fill `header` with the root keys, see `split`."""
    for _, events in split(iter_bytes(source, log), event_decoder(), header, log):
        yield events
        del events  # see split: before the next block


def us(nanoseconds: int) -> int | Decimal:
    """Return ns as the µs of a trace file, exactly.

    Args:
        nanoseconds: a time or duration.

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
    return _LAST_BACKSLASH.sub(rb"\1 ", text) if _BACKSLASH in text else text


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
        """Open a file.

        Args:
            target: where to write, gzipped if it ends in ``.gz``; its folder is made.
            sources: files that must not be written over.

        Raises:
            TraceError: the target is one of the sources, or cannot be written.
        """
        super().__init__(target, sources=sources)
        self.count = 0
        """Events written so far."""
        self._header: dict[str, Any] | None = None
        self._rest: dict[str, Any] = {}
        self._encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_plain).encode

    def __enter__(self) -> TraceWriter:
        return self

    def begin(self, header: dict[str, Any]) -> None:
        """Write the root keys that stand before the events; only the first call counts."""
        if self._header is None:
            self._header = dict(header)
            keys = [self._encode(key) + b": " + self._encode(value) for key, value in header.items()]
            self._write(b"{\n" + b"".join(key + SEPARATOR for key in keys) + b'"traceEvents": [\n')

    def end(self, header: dict[str, Any]) -> None:
        """Write the root keys that are not in the header yet after the events."""
        self._rest = dict(header)

    def add(self, events: Iterable[RawEvent | bytes | Rows]) -> None:
        """Write events, encoded ones too; a text that ends in a backslash gets a blank, or Perfetto cannot read it.

        Args:
            events: of `Rows`, the texts must not need it.
        """
        for are_rows, some in groupby(events, lambda event: isinstance(event, Rows)):
            if are_rows:
                self._add_rows(some)
            else:
                texts = (event if isinstance(event, bytes) else self._encode(event) for event in some)
                self.add_texts(readable(text) for text in texts)

    def _add_rows(self, parts: Iterable[Any]) -> None:
        self.begin({})
        for rows in parts:
            if len(rows):
                self._write(SEPARATOR if self.count else b"")
                self._write(rows.joined)
                self.count += len(rows)

    def add_texts(self, texts: Iterable[Any]) -> None:
        """Write events given as JSON, or as dicts."""
        self.begin({})
        left = iter(texts)
        while some := list(islice(left, _EVENTS_AT_ONCE)):
            block = [text if isinstance(text, bytes | msgspec.Raw) else self._encode(text) for text in some]
            self._write((SEPARATOR if self.count else b"") + SEPARATOR.join(block))
            self.count += len(block)

    def _finish(self) -> None:
        self.begin(self._rest)
        have = self._header or {}
        keys = [(key, value) for key, value in self._rest.items() if key not in have]
        texts = [SEPARATOR + self._encode(key) + b": " + self._encode(value) for key, value in keys]
        self._write(b"\n]" + b"".join(texts) + b"\n}\n")


def _edited(blocks: Iterable[list[RawEvent]], edit: Edit) -> Iterator[Iterator[RawEvent]]:
    for block in blocks:
        yield _each(block, edit)


def _each(block: list[RawEvent], edit: Edit) -> Iterator[RawEvent]:
    for event in block:
        changed = edit(event)
        if isinstance(changed, dict):
            yield changed
        elif changed is not None:
            yield from changed


def _copied(source: TracePath, header: dict[str, Any], log: IssueLog) -> Iterator[list[msgspec.Raw]]:
    for _, texts in split(iter_bytes(source, log), event_text_decoder(), header, log):
        yield texts
        del texts


def _plain(value: object) -> object:
    """Return numpy's numbers as Python's."""
    if hasattr(value, "item"):
        return value.item()
    msg = f"{type(value).__name__} cannot be written as JSON"
    raise TypeError(msg)
