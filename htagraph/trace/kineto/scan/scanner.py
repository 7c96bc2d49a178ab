"""Text of events → a `Block` of rows of numbers, by the compiled scan; or nothing, for the general decoder to do it."""

from __future__ import annotations

import itertools
import secrets
import sys
from collections import deque
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints
from htagraph.core.compiled import njit
from htagraph.trace.kept import Frames
from htagraph.trace.kineto.decode import UNDECODABLE
from htagraph.trace.kineto.events import BulkField, call_columns, columns, is_frame
from htagraph.trace.kineto.scan import events as scan
from htagraph.trace.kineto.scan.events import NO_SPAN
from htagraph.trace.kineto.scan.grammar import (
    PADDING,
    Int,
    compiled,
    put,
    rows_address,
    text_address,
    with_padding,
    word,
)

__all__ = [
    "NO_TOKEN", "Block", "EventTextScanner", "EventTexts", "Key", "Reused", "Scanned", "Scanner", "TokenTable",
    "argument_keys", "scan_tables", "span_text",
]  # fmt: skip

_MIN_EVENT_BYTES = 24
"""Bytes per event for which there is room; a text with shorter ones is declined. Chosen: phase and two times take 25.
Doubled, it saves 50 bytes of memory per event in flight, and declines events of less than 48 bytes."""
_MIN_ARGUMENT_BYTES = len('"Addr":1')
"""Bytes per argument for which there is room. The shortest key has four letters, which with quotes, colon and value
makes 8. Doubled, texts with many short arguments would be declined."""
_MAX_TEXT_BYTES = int(np.iinfo(np.int32).max)
"""Bytes of a text: positions in it are the upper half of a span. Doubled, spans would overflow."""
_PAIR_BYTES = 2 * np.dtype(np.int64).itemsize
_AS_OBJECTS = tuple(map(ord, "MBE"))  # phases whose events are read as objects, whole
_ByKey: TypeAlias = dict[int, tuple[Array, Array]]
_KINDS = {"int64": scan.SIGNED, "uint64": scan.UNSIGNED, "float64": scan.FLOAT, "str": scan.TEXT}


@dataclass(frozen=True)
class Key:
    """A key of arguments that is read, and the column that it fills."""

    name: str
    field: BulkField
    kind: int


@dataclass(frozen=True, eq=False)
class Block:
    """Events as rows of numbers (columns of `scan`, each of which is contiguous), and what they refer to."""

    text: Array
    offset: int
    """Position of the text in the document."""
    exact: bool
    """True if times were read as decimals."""
    rows: Array
    """One row per event."""
    names: Array
    """Token of each event's name."""
    categories: Array
    """Token of each event's category."""
    processes: Array
    """Token of each event's process."""
    lanes: Array
    """Number of each event's pair of process and thread."""
    arguments: dict[int, tuple[Array, Array]]
    """Events and values by key number; values of texts are tokens, of raw texts spans."""
    odd: dict[int, tuple[Array, Array]]
    """Events and values, as objects, by key number, where a value is not of its column's type."""
    is_frame: Array
    """Which events are calls of Python functions."""
    left_out: Array
    """Which events are to have no row: they have no name here."""
    calls: bool
    """True if keys of calls were read."""
    values: list[Any]
    """What each token says."""
    pairs: list[tuple[int, int]]
    """Tokens of process and thread by number of their pair."""

    def __len__(self) -> int:
        """Number of events."""
        return len(self.rows)

    def lane(self, pair: int) -> tuple[Any, Any]:
        """Return the process and thread of a pair of tokens, as in the file; "" where the event has none."""
        process, thread = self.pairs[pair]
        return tuple("" if token == NO_TOKEN else self.values[token] for token in (process, thread))  # type: ignore[return-value]

    def label(self, event: int) -> tuple[Any, Any]:
        """Return category and name of an event, as in the file."""
        return self.values[self.categories[event]], self.values[self.names[event]]


@cache
def argument_keys(*, calls: bool) -> tuple[Key, ...]:
    """Return the keys of arguments that are read, of one column today's last, so that its value wins."""
    keys = [
        Key(key, field._replace(keys=(key,)), _KINDS[field.column.dtype])
        for field in columns()
        for key in reversed(field.keys)
    ]
    if calls:
        keys += [Key(field.keys[0], field._replace(keys=field.keys[:1]), scan.RAW) for field in call_columns()]
    return tuple(keys)


@cache
def scan_tables(*, calls: bool) -> tuple[Array, Array]:
    """Return the tables of keys for `scan.scan_events`; `calls` as in `argument_keys`."""
    known = [(key.name, key.kind) for key in argument_keys(calls=calls)]
    return scan.key_table([(name, 0) for name in scan.FIELDS]), scan.key_table(known)


_Found: TypeAlias = tuple[int, Array, Array, Array, tuple[Array, list[int]]]
"""Result of a scan; the text; rows of events; their names, categories, processes and threads; arguments by key."""
Scanned: TypeAlias = "tuple[_Scan, _Found]"
"""What a compiled scan made of a text, and whose memory that is in."""


class Scanner:
    """Scans the texts of one file, one after the other.

    `calls` reads the arguments of calls of host-side communication too; `frames` decides which calls of Python
    functions are left out.
    """

    def __init__(self, *, calls: bool, frames: Frames | None = None) -> None:
        self._calls, self._frames = calls, frames
        self._texts, self._pairs_seen = TokenTable(), TokenTable()
        self._values: list[Any] = [None]
        self._pairs = [(NO_TOKEN, NO_TOKEN)]
        self._unreadable: list[int] = []
        self._idle: deque[_Scan] = deque()

    def scanned(self, text: bytes | memoryview, *, exact: bool) -> Scanned:
        """Return what the compiled scan makes of a text; threads may scan several texts of a file at once."""
        try:
            memory = self._idle.popleft()
        except IndexError:
            memory = _Scan()
        result, whole, rows, args = memory(text, calls=self._calls, exact=exact)
        if result == scan.SCANNED and not _objects_are_utf8(whole, rows):
            result = scan.DECLINED
        # event by event, while its text is in a cache
        labels = np.ascontiguousarray(rows[:, scan.NAME : scan.THREAD + 1])
        by_column = np.ascontiguousarray(rows.T).T  # columns are looked at one by one
        return memory, (result, whole, by_column, labels, _by_key(args))

    def scan(
        self, text: bytes | memoryview, offset: int, *, exact: bool, scanned: Scanned | None = None
    ) -> tuple[Block | None, bool]:
        """Return (the events of a text that holds events with commas between them, True if times need exact reading).

        There is no block for text that is not understood, and for times that are too large for floats. `offset` is the
        position of the text in the document; `exact` reads times as decimals; `scanned` is what comes of the text, if
        that is known.
        """
        memory, found = scanned or self.scanned(text, exact=exact)
        try:
            return self._block(found, offset, exact=exact)
        finally:
            self._idle.append(memory)

    def _block(self, found: _Found, offset: int, *, exact: bool) -> tuple[Block | None, bool]:
        result, text, rows, labels, args = found
        if result != scan.SCANNED:
            return None, result == scan.NEEDS_EXACT
        base = text_address(text)
        left_out = self._left_out(base, rows)
        labels[left_out, 0] = scan.NO_SPAN
        of_events = self._texts.numbers(base, labels.ravel()).reshape(labels.shape)
        names, categories, processes, _ = np.ascontiguousarray(of_events.T)
        tokens = [of_events]
        arguments, odd = self._arguments(text, *args)
        tokens += [values for key, (_, values) in arguments.items() if self._kind(key) == scan.TEXT]
        pairs = of_events[:, -2:].astype(np.int64, order="C")
        spans = (np.arange(len(rows)) * _PAIR_BYTES << 32) + _PAIR_BYTES
        pairs_text = with_padding(pairs.reshape(-1))
        lanes = self._pairs_seen.numbers(text_address(pairs_text), spans)
        self._decode()
        if odd is None or (self._unreadable and any(np.isin(part, self._unreadable).any() for part in tokens)):
            return None, False
        block = Block(
            text, offset, exact, rows, names, categories, processes, lanes, arguments, odd,
            self._is_frame(rows, categories), left_out, self._calls, self._values, self._pairs,
        )  # fmt: skip
        return block, False

    def _left_out(self, base: int, rows: Array) -> Array:
        """Return which events are calls of Python functions that are left out."""
        if self._frames is None or not self._frames.may_leave_out:
            return np.zeros(len(rows), np.bool_)
        is_frame = self._is_frame(rows, self._texts.numbers(base, rows[:, scan.CATEGORY].copy()))
        return self._frames.left_out_of(is_frame, rows[:, scan.START], rows[:, scan.DURATION])

    def _is_frame(self, rows: Array, categories: Array) -> Array:
        """Return which events are calls of Python functions."""
        self._decode()
        of_token = np.bincount(categories) > 0
        for token in np.flatnonzero(of_token).tolist():
            of_token[token] = is_frame(self._values[token])
        return of_token[categories] & (rows[:, scan.PHASE] == ord("X"))

    def _kind(self, key: int) -> int:
        return argument_keys(calls=self._calls)[key].kind

    def _arguments(self, text: Array, args: Array, behind: list[int]) -> tuple[_ByKey, _ByKey | None]:
        """Return events and values by key: those that a column holds, and others, None if one of them is unreadable."""
        arguments: _ByKey = {}
        odd: _ByKey = {}
        for key, (start, stop) in enumerate(itertools.pairwise((0, *behind))):
            events, keys, fitting = args[start:stop].T
            is_odd = keys >= scan.SPAN
            if is_odd.any():
                objects = np.empty(np.count_nonzero(is_odd), object)
                try:
                    for i, span in enumerate(fitting[is_odd].tolist()):
                        objects[i] = msgspec.json.decode(span_text(text, span))
                except UNDECODABLE:
                    return arguments, None
                odd[key] = events[is_odd], objects
                events, fitting = events[~is_odd], fitting[~is_odd]
            if len(events):
                if self._kind(key) == scan.TEXT:
                    fitting = self._texts.numbers(text_address(text), fitting)
                arguments[key] = events, fitting
        return arguments, odd

    def _decode(self) -> None:
        while len(self._values) < len(self._texts):
            try:
                self._values.append(msgspec.json.decode(self._texts.text(len(self._values))))
            except UNDECODABLE:
                self._unreadable.append(len(self._values))
                self._values.append(None)
        while len(self._pairs) < len(self._pairs_seen):
            process, thread = np.frombuffer(self._pairs_seen.text(len(self._pairs)), np.int64).tolist()
            self._pairs.append((process, thread))


def _objects_are_utf8(text: Array, rows: Array) -> bool:
    """Return True if the events that are read as objects are valid UTF-8; of others, only texts in use matter."""
    where = np.flatnonzero(np.isin(rows[:, scan.PHASE], _AS_OBJECTS))
    spans = zip(rows[where, scan.OFFSET].tolist(), rows[where, scan.STOP].tolist(), strict=True)
    try:
        b"".join(text[start:stop].tobytes() for start, stop in spans).decode()
    except UnicodeDecodeError:
        return False
    return True


def _by_key(args: Array) -> tuple[Array, list[int]]:
    """Return the rows of arguments in the order of their keys, by column, and where those of each key end."""
    columns = np.ascontiguousarray(args.T)
    number = columns[1].astype(np.uint8)
    order = np.argsort(number, kind="stable")  # a radix sort
    behind = np.cumsum(np.bincount(number, minlength=scan.MAX_KEYS)).tolist()
    return columns.take(order, axis=1).T, behind


def span_text(text: Array, span: int) -> bytes:
    """Return the bytes of a span."""
    start, length = span >> 32, span & (2**32 - 1)
    return text[start : start + length].tobytes()


_MAX_BYTES = 256 << 20
"""Bytes of the largest memory that is kept. Chosen: a block of text needs a tenth; larger ones hold one huge event.
Doubled, a file with such an event takes that much more memory until it is read."""
_OWN_REFERENCES = 2
"""References that Python counts to an array nobody else looks into: the one that is kept, and the one it counts by."""


class Reused:
    """Lends an array again and again.

    An array that is a part of the lent one refers to it, so it is not lent again while there is one.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._kept: Array = np.empty(0, self._dtype)

    def lend(self, count: int) -> Array:
        """Return an array of `count` values that nobody else has, whatever they are.

        Example:
            >>> memory = Reused(np.int64)
            >>> first, second = memory.lend(3), memory.lend(3)
            >>> np.shares_memory(first, second)
            False
        """
        if len(self._kept) < count or sys.getrefcount(self._kept) > _OWN_REFERENCES:
            made = np.empty(count, self._dtype)
            if made.nbytes > _MAX_BYTES:
                return made
            self._kept = made
        return self._kept[:count]


@dataclass(frozen=True, eq=False)
class EventTexts:
    """The events of a text, each as the JSON that it is."""

    text: bytes
    starts: Ints
    stops: Ints

    def __len__(self) -> int:
        """Number of events."""
        return len(self.starts)

    def __getitem__(self, event: int) -> bytes:
        """Return the text of an event."""
        return self.text[self.starts[event] : self.stops[event]]


class EventTextScanner:
    """Finds the events of the texts of one file, one text after the other."""

    def __init__(self) -> None:
        self._scan = _Scan()

    def __call__(self, part: bytes | memoryview, offset: int) -> EventTexts | None:
        """Return the events of a text that holds events with commas between them, numbered as in bulk decoding.

        None for a text that bulk decoding might refuse: it must go through the general decoder.
        """
        del offset  # the position of the text in the document
        text = bytes(part)
        if b"\\u" in text or not _is_utf8(text):  # half a surrogate pair, or text that is repaired
            return None
        result, whole, rows, args = self._scan(text, calls=False, exact=True)
        odd = args[args[:, 1] >= scan.SPAN, 2].tolist()  # values that are not of their columns' types
        if result != scan.SCANNED or not all(map(_is_readable, map(partial(span_text, whole), odd))):
            return None
        return EventTexts(text, rows[:, scan.OFFSET].copy(), rows[:, scan.STOP].copy())


class _Scan:
    """Scans text after text into memory that is used again: new memory costs as much as the scan."""

    def __init__(self) -> None:
        self._of_text, self._of_rows, self._of_args = Reused(np.uint8), Reused(np.int64), Reused(np.int64)

    def __call__(self, text: bytes | memoryview, *, calls: bool, exact: bool) -> tuple[int, Array, Array, Array]:
        """Return (result of `scan_events`, the text with `PADDING`, rows of events, rows of arguments)."""
        size, is_too_long = len(text), len(text) > _MAX_TEXT_BYTES
        count, arguments = (0, 0) if is_too_long else (size // _MIN_EVENT_BYTES + 1, size // _MIN_ARGUMENT_BYTES)
        rows = self._of_rows.lend(count * scan.ROW_WIDTH).reshape(-1, scan.ROW_WIDTH)
        args = self._of_args.lend((arguments + scan.MAX_KEYS) * scan.ARGUMENT_WIDTH).reshape(-1, scan.ARGUMENT_WIDTH)
        if is_too_long:
            return scan.DECLINED, np.zeros(0, np.uint8), rows[:0], args[:0]
        whole = with_padding(text, self._of_text.lend(size + len(PADDING)))
        fields, known = scan_tables(calls=calls)
        result, events, used = scan.scan_events(
            (text_address(whole), size), (rows_address(fields), rows_address(known)), (rows_address(rows), len(rows)),
            (rows_address(args), len(args)), int(exact),
        )  # fmt: skip
        return result, whole, rows[:events], args[:used]


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


NO_TOKEN = NO_SPAN
"""Number of an absent text."""
FIRST_SLOTS = 1 << 12
"""Slots of a hash table to begin with. Chosen: 64 kB lie in a cache of the processor. Doubled, tables of few keys take
twice the memory."""
_TEXT_BYTES = 256
"""Bytes of a text for which a new table has room. Chosen: long names; doubling it costs 1 MB per file."""


class _Table(NamedTuple):
    places: Array
    """Number of a text by hash, 0 where there is none; a power of two of places, at most half of them taken."""
    codes: Array
    """Hash by number."""
    spans: Array
    """Start and length in `kept` by number."""
    kept: Array
    """Bytes of the texts, each filled up with zeros to whole words."""
    used: Array
    """Number of texts (with the absent one), number of bytes."""


class TokenTable:
    """Texts seen so far; numbers begin at 1."""

    def __init__(self) -> None:
        self._secret = np.array([secrets.randbits(64), secrets.randbits(64) | 1], np.uint64)
        self._table = _empty(FIRST_SLOTS, _TEXT_BYTES * FIRST_SLOTS)

    def __len__(self) -> int:
        """Number of texts, with the absent one."""
        return int(self._table.used[0])

    def numbers(self, base: int, spans: Array) -> Array:
        """Return the number of each span (start · 2³² + length, 0 where absent) of the text at address `base`."""
        numbers = np.empty(len(spans), np.int32)
        done = 0
        while done < len(spans):
            done = _number_spans(base, spans, done, self._secret, self._table, numbers)
            if done < len(spans):
                self._table = _grown(self._table, int(spans[done]) & (2**32 - 1))
        return numbers

    def text(self, number: int) -> bytes:
        """Return the text that has a number."""
        start, length = self._table.spans[number].tolist()
        return self._table.kept[start : start + length].tobytes()


def _empty(tokens: int, size: int) -> _Table:
    return _Table(
        np.zeros(2 * tokens, np.int32), np.zeros(tokens, np.uint64), np.zeros((tokens, 2), np.int64),
        np.zeros(size, np.uint8), np.array([1, 0], np.int64),
    )  # fmt: skip


def _grown(old: _Table, need: int) -> _Table:
    """Return a table with the same texts and more room."""
    count, size = old.used.tolist()
    new = _empty(2 * len(old.codes), 2 * len(old.kept) + need)
    for whole, part in zip(new[1:4], old[1:4], strict=True):
        whole[: len(part)] = part
    new.used[:] = count, size
    _place_again(new.places, new.codes, count)
    return new


@njit(cache=True, nogil=True)
def _place_again(places: Array, codes: Array, count: Int) -> None:
    last = np.uint64(len(places) - 1)
    for number in range(1, count):
        place = codes[number] & last
        while places[place]:
            place = (place + np.uint64(1)) & last
        places[place] = number


@njit(cache=True, nogil=True)
def _number_spans(base: Int, spans: Array, done: Int, secret: Array, table: _Table, numbers: Array) -> Int:
    """Fill `numbers` from position `done` on; return how far the table had room."""
    kept, last = table.kept.ctypes.data, np.uint64(len(table.places) - 1)
    for i in range(done, len(spans)):
        start, length = base + (spans[i] >> 32), spans[i] & 0xFFFF_FFFF
        if length == 0:
            numbers[i] = NO_TOKEN
            continue
        code = _code(start, length, secret[0], secret[1])
        place = code & last
        number = table.places[place]
        while number and not (
            table.codes[number] == code
            and table.spans[number, 1] == length
            and _same(start, length, kept + table.spans[number, 0])
        ):
            place = (place + np.uint64(1)) & last
            number = table.places[place]
        if number == 0:
            number, size = table.used
            if number == len(table.codes) or size + length + 8 > len(table.kept):
                return i
            table.places[place], table.codes[number] = number, code
            table.spans[number, 0], table.spans[number, 1] = size, length
            table.used[0], table.used[1] = number + 1, size + _keep(start, length, kept + size)
        numbers[i] = number
    return len(spans)


@compiled
def _code(start: Int, length: Int, seed: Int, factor: Int) -> Int:
    code = (seed ^ np.uint64(length)) * factor
    for at in range(start, start + length - 7, 8):
        code = (code ^ word(at)) * factor
        code ^= code >> np.uint64(32)
    code = (code ^ _rest(start, length)) * factor
    return code ^ (code >> np.uint64(32))


@compiled
def _rest(start: Int, length: Int) -> Int:
    """Return the bytes behind the last whole word of a text, as a word; 0 if there are none."""
    bits = np.uint64(8 * (length & 7))
    return word(start + (length & ~7)) & ((np.uint64(1) << bits) - np.uint64(1))


@compiled
def _same(start: Int, length: Int, known: Int) -> bool:
    for at in range(0, length - 7, 8):
        if word(start + at) != word(known + at):
            return False
    return _rest(start, length) == _rest(known, length)


@compiled
def _keep(start: Int, length: Int, to: Int) -> Int:
    """Copy a text, filled up with zeros to whole words; return the bytes taken."""
    for at in range(0, length - 7, 8):
        put(to + at, np.int64(word(start + at)))
    put(to + (length & ~7), np.int64(_rest(start, length)))
    return (length & ~7) + 8
