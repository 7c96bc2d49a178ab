"""The recorded events of one rank, block by block, as they are written into a trace of several ranks for Perfetto.

Texts of events go from file to file as texts: their places are found by a compiled pass over events that the compiled
scan has understood. Only events that take more than a new place and new times are decoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, Ints, distinct
from htagraph.core.compiled import njit
from htagraph.core.errors import IssueLog
from htagraph.graph.activities import Lane as GraphLane
from htagraph.output.export import trace_writer
from htagraph.output.export.originals import FLOWS, Lane, Original, start_ns
from htagraph.output.export.trace_writer import Column, RawEvent, TextRows, metadata, row_texts, slice_rows, us
from htagraph.output.scene import NO_NUMBER, Slices
from htagraph.trace.columns import Interner, label
from htagraph.trace.kineto.decode import BlockDecoder, split
from htagraph.trace.kineto.scan.events import (
    FLAGS,
    GOLDEN,
    OFFSET,
    PHASE,
    START_ABSENT,
    STOP,
    UNKNOWN,
    key_number,
    key_table,
)
from htagraph.trace.kineto.scan.grammar import (
    blank,
    byte,
    compiled,
    key_end,
    rows_address,
    skip_value,
    text_address,
    value_behind,
    word,
)
from htagraph.trace.kineto.scan.scanner import Block, span_text
from htagraph.trace.kineto.source import ahead, iter_bytes
from htagraph.trace.kineto.times import padded

__all__ = ["IDS_PER_RANK", "PREDICTED", "EventDecoder", "PidOf", "PidOfRank", "RecordedEvents", "event_spans"]

Part: TypeAlias = RawEvent | Slices | TextRows
_Events: TypeAlias = Block | list[RawEvent]

IDS_PER_RANK = 2**32
"""Ids of arrows that a rank may use; more than a file has events. Source: 2³² ranks of such files fit 64 bits."""
_PIDS_PER_RANK = 1000
"""Processes that a rank may have before their numbers meet those of the next rank. Source: files have a dozen."""
PREDICTED = ", predicted"
"""The process of a rank's activities at predicted times, beside the recorded ones: what its name ends in."""
_INSTANTS = [ord(phase) for phase in ("i", "I", "R")]
"""Phases of events that are moments."""
_NAMING = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
_NOT_OTHERS = [ord(phase) for phase in ("X", "M", "B", "E", *FLOWS)]
"""Phases of events that are slices, names of tracks, or ends of slices and arrows."""
_WRITTEN = frozenset({"ph", "pid", "tid", "ts", "dur", "name", "cat", "args"})
"""Keys that every writer of slices knows; the JSON of the others is `Slices.more`."""
_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode
NAME, CATEGORY, ARGS, SCOPE, INSIDE, PLAIN = range(6)
"""Columns: spans of the values (start · 2³² + length, 0 where absent), that between the brackets of the arguments, and
1 for an event that can be written with these spans and without any other text of it."""
_SPANS: Final = ("name", "cat", "args", "s")  # in the order of the columns
_KEY_TABLE: Final = key_table([(key, 0) for key in (*_SPANS, "ph", "pid", "tid", "ts", "dur")])
_COUNT: Final = len(_SPANS)
_QUOTE, _COMMA, _OPEN, _BACKSLASH, _SPACE = b'",{\\ '
_ONES, _TOPS, _BACKSLASHES = (np.frombuffer(bytes([each] * 8), np.uint64)[0] for each in (1, 0x80, _BACKSLASH))


class PidOf(dict[tuple[int, "int | str"], int]):
    """(rank, pid in the file) → pid in what is written: no two ranks share one.

    Example:
        >>> pid_of = PidOf()
        >>> pid_of[0, 4711], pid_of[0, "Spans"], pid_of[1, 4711], pid_of[0, 4711]
        (1000, 1001, 2000, 1000)
    """

    def __missing__(self, key: tuple[int, int | str]) -> int:
        taken = sum(rank == key[0] for rank, _ in self)
        self[key] = pid = (key[0] + 1) * _PIDS_PER_RANK + taken
        return pid


class PidOfRank(PidOf):
    """The same with one process for all that a rank recorded, and one for its predicted times.

    Example:
        >>> pid_of = PidOfRank()
        >>> pid_of[0, 4711], pid_of[0, "Spans"], pid_of[0, PREDICTED]
        (1000, 1000, 1001)
    """

    def __missing__(self, key: tuple[int, int | str]) -> int:
        return (key[0] + 1) * _PIDS_PER_RANK + (key[1] == PREDICTED)


class RecordedEvents:
    """Yields the events of a file to write, block by block; arrows and the names of tracks come last.

    `base_ns` is the moment on the common clock that times are relative to, `critical` for how many ns each slice is on
    the critical path; `pid_of` gives processes their numbers.
    """

    def __init__(
        self, original: Original, base_ns: int, pid_of: PidOf, critical: Array,
        lanes: Mapping[Lane, GraphLane] | None = None,
    ) -> None:  # fmt: skip
        self._original, self._base_ns, self._pid_of, self._critical = original, base_ns, pid_of, critical
        self._lanes = lanes or {}
        self.left_out = 0
        """Events that were not written: without a time, or of a clock that was hours off."""
        self.not_drawn = 0
        """Events of phases that are not written in the format."""
        self._names: dict[Lane, str] = {}
        self._processes: dict[int | str, dict[str, str]] = {}
        self._places = Interner[tuple[Lane, int]]()
        places = [self._places[original.lanes[lane], level] for lane, level in original.tracks]
        self._place = np.array(places, np.int64)[original.track]
        """Of each slice: a position in `_places`."""
        ends = np.concatenate((original.arrows.tail, original.arrows.head))
        # an instant is a slice to Perfetto: where an arrow begins or ends it must come behind the arrow
        self._held = np.sort(_codes(self._place[ends], original.start[ends]))

    def write(self, writer: Any) -> None:  # noqa: ANN401 - the writer of the format
        """Write all events."""
        writer.add(self)

    def __iter__(self) -> Iterator[Part]:
        late: list[Part] = []
        for slices, row, others in self._blocks():
            held = row < 0
            held[held] = self._is_held(slices.place[held], slices.start[held])
            if held.any():
                late.append(slice_rows(slices.rows(held)))
            yield slices.rows(~held) if held.any() else slices
            for event in others:
                place, moment = self._moved(event)
                is_held = moment is not None and self._is_held(np.array([place]), np.array([moment]))[0]
                if is_held:
                    late.append(event)
                elif moment is not None or event.get("ph") == "M":
                    yield event
        yield from self._arrows()
        yield from late
        yield from self._track_names()

    def _blocks(self) -> Iterator[tuple[Slices, Array, list[RawEvent]]]:
        """Yield of each block slices and instants, the row of each slice (-1: instant), and other, unlearned events."""
        original, decoder = self._original, EventDecoder()
        log = IssueLog(str(original.path))
        self._where()  # processes that have slices get the first numbers
        for first, block in split(ahead(iter_bytes(original.path, log)), decoder, {}, log, decoder.scan):
            rows = slice(*np.searchsorted(original.index, [first, first + len(block)]).tolist())
            slices, row, others = self._of_block(block, original.index[rows] - first, rows)
            yield slices, row, [event for event in others if not self._is_learned(event)]

    def _of_block(self, block: _Events, index: Array, rows: slice) -> tuple[Slices, Array, list[RawEvent]]:
        """Return what is written of a block whose events at `index` are rows of the original."""
        phase = _phases(block)
        is_other = np.ones(len(block), np.bool_)
        is_other[index] = False
        self.left_out += int(np.count_nonzero(is_other & (phase == ord("X"))))
        is_instant = is_other & np.isin(phase, _INSTANTS)
        instants, place, moment = self._instants(block, np.flatnonzero(is_instant))
        event = np.concatenate((index, instants))
        order = np.argsort(event, kind="stable")
        event, nothing = event[order], np.zeros(len(instants), np.int64)
        columns = (
            (np.arange(rows.start, rows.stop), nothing - 1), (self._place[rows], place),
            (self._original.start[rows] - self._base_ns, moment),
            (self._original.duration[rows], nothing + NO_NUMBER), (self._critical[rows], nothing),
        )  # fmt: skip
        row, place, start, duration, critical = (np.concatenate(pair)[order] for pair in columns)
        if isinstance(block, Block):
            texts = _Texts.of_block(block, event, critical)
        else:
            texts = _Texts(len(event), np.zeros(0, np.uint8))
        for at in np.flatnonzero(~texts.plain).tolist():
            texts.put(at, _event(block, event[at]), int(critical[at]))
        is_other &= ~is_instant & (~np.isin(phase, _NOT_OTHERS) | (phase == ord("M")))
        others = [_event(block, at) for at in np.flatnonzero(is_other).tolist()]
        return texts.slices(self._where(), place, start, duration), row, others

    def _instants(self, block: _Events, instants: Array) -> tuple[Array, Array, Array]:
        """Return which instants have a usable time, and where and when they are; count the others."""
        original = self._original
        if not isinstance(block, Block):
            moved = [(at, *self._moved(block[at])) for at in instants.tolist()]
            kept = np.array([each for each in moved if each[2] is not None], np.int64).reshape(-1, 3)
            return kept[:, 0], kept[:, 1], kept[:, 2]
        moment = original.common(start_ns(block, instants, unpadded=original.unpadded)) - self._base_ns
        usable = (block.rows[instants, FLAGS] & START_ABSENT == 0) & (moment >= 0)
        self.left_out += int(np.count_nonzero(~usable))
        which, pairs = pd.factorize(block.lanes[instants[usable]])
        place = [self._places[place_of(*block.lane(pair)), 0] for pair in pairs.tolist()]
        return instants[usable], np.array(place, np.int64)[which], moment[usable]

    def _where(self) -> list[tuple[int, int]]:
        return [self._pid_tid(*place) for place in self._places]

    def _pid_tid(self, lane: Lane, level: int) -> tuple[int, int]:
        return self._pid_of[self._original.rank, lane[0]], self._original.tid(lane, level)

    def _is_held(self, place: Array, moment: Array) -> Array:
        """Return whether an arrow begins or ends at each place and moment since the base."""
        if not len(self._held):
            return np.zeros(len(place), np.bool_)
        codes = _codes(place, moment + self._base_ns)
        at = np.minimum(np.searchsorted(self._held, codes), len(self._held) - 1)
        return np.asarray(self._held[at] == codes)

    def _moved(self, event: RawEvent) -> tuple[int, int | None]:
        """Give an event its new place and time; return its place and its moment since the base, None without one."""
        lane, moment = place_of(event.get("pid", ""), event.get("tid", "")), None
        if event.get("ph") != "M":
            moment = self._common(event.get("ts"))
            moment = None if moment is None or moment < self._base_ns else moment - self._base_ns
            if moment is None:
                self.left_out += 1
                return 0, None
            event["ts"] = us(moment)
        event["pid"], event["tid"] = self._pid_tid(lane, 0)
        return self._places[lane, 0], moment

    def _is_learned(self, event: RawEvent) -> bool:
        """Return whether an event only names a process or a track, whose names are written in the end."""
        name, args = event.get("name"), event.get("args")
        if event.get("ph") != "M" or name not in _NAMING:
            return False
        lane = place_of(event.get("pid", ""), event.get("tid", ""))
        if isinstance(args, dict):
            text = str(next(iter(args.values()), ""))
            if name == "thread_name":
                self._names[lane] = text.strip()
            elif name in ("process_name", "process_labels"):
                self._processes.setdefault(lane[0], {})[name] = text
        return True

    def _common(self, raw: object) -> int | None:
        """Return a time in the file as ns on the common clock; None where it is no time."""
        try:
            text = str(raw)
            since_base = round(Decimal(padded(text) if self._original.unpadded else text) * 1000)
            return int(self._original.common(np.array([since_base], np.int64))[0])
        except (InvalidOperation, ValueError, OverflowError):
            return None

    def _arrows(self) -> Iterator[TextRows]:
        arrows, original = self._original.arrows, self._original
        labels = [
            b'{"ph":"%b","cat":%b,"name":%b,"id":' % (phase, _encode(category), _encode(name))
            for phase in (b"s", b"f")
            for category, name in arrows.labels
        ]
        places = [b'"pid":%d,"tid":%d' % place for place in self._where()]
        for first in range(0, len(arrows), trace_writer.AT_ONCE):
            some = slice(first, first + trace_writer.AT_ONCE)
            slices = np.stack((arrows.tail[some], arrows.head[some]), axis=1).ravel()
            label_, end = np.repeat(arrows.label[some], 2), np.arange(len(slices)) % 2
            columns: tuple[Column, ...] = (
                (labels, label_ + end * len(arrows.labels)),
                (trace_writer.INTEGER, original.rank * IDS_PER_RANK + 1 + first + np.arange(len(slices)) // 2),
                b",", (places, self._place[slices]), b',"ts":',
                (trace_writer.MICROSECONDS, original.start[slices] - self._base_ns), ([b"}", b',"bp":"e"}'], end),
            )  # fmt: skip
            yield row_texts(columns, len(slices))

    def _track_names(self) -> Iterator[RawEvent]:
        original = self._original
        for pid in dict.fromkeys(original.lanes[number][0] for number, _ in original.tracks):
            labels = self._processes.get(pid, {})
            name, what = labels.get("process_name", ""), labels.get("process_labels", "")
            text = " ".join(filter(None, (f"rank {original.rank}", what, f"({name} {pid})" if name else f"({pid})")))
            yield metadata("process_name", self._pid_of[original.rank, pid], 0, name=text)
        for number, level in original.tracks:
            lane = original.lanes[number]
            yield metadata("thread_name", *self._pid_tid(lane, level), name=self._track_name(lane, level))

    def _track_name(self, lane: Lane, level: int, unnamed: str = "") -> str:
        """Return the name of a track; `unnamed` where the lane has neither a name nor a number."""
        name = self._names.get(lane) or (f"thread {lane[1]}" if isinstance(lane[1], int) else str(lane[1]) or unnamed)
        return f"{name} ({level + 1})" if level else name


class _Texts:
    """Names, categories, arguments and other keys of slices: positions among texts, and spans of a source of JSON."""

    def __init__(self, count: int, source: Array) -> None:
        self._texts, self._sources, self._size = Interner[str](), [source], len(source)
        self.plain = np.zeros(count, np.bool_)
        """Which rows are known without decoding the event."""
        self.name, self.category, self.args, self.more = np.zeros((4, count), np.int64)

    @staticmethod
    def of_block(block: Block, event: Array, critical: Array) -> _Texts:
        """Return the texts of scanned events by the spans of their values; rows that are not plain are to be `put`."""
        spans, on_path = event_spans(block, event), critical > 0
        texts = _Texts(len(event), block.text)
        is_object = spans[:, INSIDE] != 0
        texts.plain = (spans[:, PLAIN] == 1) & (is_object | (spans[:, ARGS] == 0)) & (block.rows[event, PHASE] > 0)
        if on_path.any() and b'"critical_us"' in block.text.tobytes():
            texts.plain &= ~on_path
        texts._label(block, event, spans)
        texts.args = np.where(is_object, spans[:, ARGS], 0)
        inside = spans[on_path, INSIDE]
        texts._add(texts.args, on_path, (
            b"{", (trace_writer.SPAN, inside), (b",", inside & 0xFFFF_FFFF != 0),
            b'"critical_us":', (trace_writer.MICROSECONDS, critical[on_path]), b"}",
        ))  # fmt: skip
        scoped = spans[:, SCOPE] != 0
        texts._add(texts.more, scoped, (b',"s":', (trace_writer.SPAN, spans[scoped, SCOPE])))
        return texts

    def put(self, row: int, event: RawEvent, critical_ns: int) -> None:
        """Set the texts of a row to those of a decoded event."""
        args, category = event.get("args"), event.get("cat")
        self.name[row] = self._texts[str(event.get("name", ""))]
        self.category[row] = self._texts[str(category)] if category not in (None, "") else -1
        more = {key: value for key, value in event.items() if key not in _WRITTEN}
        if not isinstance(args, dict):
            more |= {"args": args} if args is not None and not critical_ns else {}
            args = None if not critical_ns else {}
        args = {**args, "critical_us": us(critical_ns)} if args is not None and critical_ns else args
        self.args[row] = 0 if args is None else self._add_one(_encode(args))
        self.more[row] = self._add_one(b"," + _encode(more)[1:-1]) if more else 0

    def slices(self, places: list[tuple[int, int]], place: Array, start: Array, duration: Array) -> Slices:
        """Return the slices that have these texts."""
        source = self._sources[0] if len(self._sources) == 1 else np.concatenate(self._sources)
        texts, columns = list(self._texts), (self.name, self.category, self.args, source, self.more)
        return Slices(places, texts, place, start, duration, *columns)

    def _label(self, block: Block, event: Array, spans: Array) -> None:
        """Set names and categories: of slices by the tokens of the scan, of others, which have none, by their JSON."""
        numbers = np.zeros(len(block.values) + 1, np.int64)
        is_slice = block.rows[event, PHASE] == ord("X")
        tokens = np.stack((block.names[event], block.categories[event]))[:, is_slice]
        for token in distinct(tokens, len(numbers)).tolist():
            text = "" if block.values[token] is None else str(block.values[token])
            numbers[token] = self._texts[text]
        self.name[is_slice], self.category[is_slice] = numbers[tokens]
        known: dict[bytes, int] = {}
        for at in np.flatnonzero(~is_slice & self.plain).tolist():
            for column, kind in ((self.name, NAME), (self.category, CATEGORY)):
                span = span_text(block.text, int(spans[at, kind]))
                if span not in known:
                    value = msgspec.json.decode(span) if span else None
                    known[span] = self._texts["" if value is None else str(value)]
                column[at] = known[span]
        self.category[self.category == self._texts[""]] = -1

    def _add(self, column: Array, which: Array, columns: Sequence[Column]) -> None:
        """Add texts to the source, and their spans to some rows of a column."""
        if which.any():
            rows = row_texts(columns, int(which.sum()), self._sources[0])
            column[which] = rows.spans + (self._size << 32)
            self._sources.append(rows.text)
            self._size += len(rows.text)

    def _add_one(self, text: bytes) -> int:
        at, self._size = self._size, self._size + len(text)
        self._sources.append(np.frombuffer(text, np.uint8))
        return (at << 32) | len(text)


class EventDecoder:
    """Decodes the text of a JSON array of events, numbered as in bulk decoding; times and fractions are decimals."""

    def __init__(self) -> None:
        self._strict = BlockDecoder()
        self._whole = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode

    def __call__(self, text: bytes) -> list[RawEvent]:
        """Return the events."""
        self._strict(text)  # refuse what bulk decoding refuses, so that both number the events alike
        return self._whole(text)

    def scan(self, text: memoryview, offset: int) -> Block | None:
        """Return the events of a text as rows of numbers, see `BlockDecoder.scan`; None if it must go to `__call__`."""
        try:
            if not (whole := bytes(text)).isascii():
                whole.decode()
        except UnicodeDecodeError:
            return None
        return self._strict.scan(text, offset)


def place_of(pid: object, tid: object) -> Lane:
    """Return process and thread, as numbers where they are some."""
    return label(pid), label(tid)


def _phases(block: _Events) -> Array:
    """Return the letter of each event's phase as a number; 0 for what is no letter."""
    if isinstance(block, Block):
        return block.rows[:, PHASE]
    phases = (str(event.get("ph")) for event in block)
    return np.array([ord(each) if len(each) == 1 else 0 for each in phases], np.int64)


def _event(block: _Events, at: int) -> RawEvent:
    if not isinstance(block, Block):
        return block[at]
    start, stop = block.rows[at, [OFFSET, STOP]].tolist()
    text = block.text[start:stop].tobytes()
    try:
        return _decode(text)
    except msgspec.ValidationError:  # an integer of hundreds of digits
        return dict(
            json.loads(text, parse_float=Decimal, parse_int=lambda each: (int if len(each) < 20 else float)(each))
        )


def _codes(place: Array, moment: Array) -> npt.NDArray[np.uint64]:
    """Return a number for each place and moment; if two share one, an instant comes late that need not."""
    return (moment.astype(np.uint64) + place.astype(np.uint64)) * np.uint64(GOLDEN) + place.astype(np.uint64)


def event_spans(block: Block, which: Array) -> Ints:
    """Return a row per event: `NAME`, `CATEGORY`, `ARGS`, `SCOPE`, `INSIDE`, `PLAIN`.

    An event is plain if it has no other keys than these and its place and times, a text for a name, and no backslash:
    one at the end of a text needs repair, see `trace_writer`.
    """
    spans = np.zeros((len(which), PLAIN + 1), np.int64)
    starts = np.ascontiguousarray(block.rows[which, OFFSET])
    _fill(text_address(block.text), starts, rows_address(_KEY_TABLE), spans)
    return spans


@njit(cache=True, nogil=True)
def _fill(base: int, offsets: Array, table: int, spans: Array) -> None:
    for row in range(len(offsets)):
        at, plain, more = blank(base + offsets[row] + 1), 1, True
        while more and byte(at) == _QUOTE:
            start, at = at + 1, key_end(at)
            key = key_number(start, at - 1, table)
            at = value_behind(at)
            stop = skip_value(at)
            if key == UNKNOWN:
                plain = 0
            elif key < _COUNT:
                spans[row, key] = ((at - base) << 32) | (stop - at)
                spans[row, INSIDE] = _inside(base, at, stop) if key == ARGS else spans[row, INSIDE]
            at = blank(stop)
            more = byte(at) == _COMMA
            at = blank(at + 1) if more else at
        for key in range(_COUNT):
            first = base + (spans[row, key] >> 32)
            plain &= not _has_backslash(first, first + (spans[row, key] & 0xFFFF_FFFF))
        spans[row, PLAIN] = plain & (spans[row, NAME] != 0) & (byte(base + (spans[row, NAME] >> 32)) == _QUOTE)


@compiled
def _inside(base: int, at: int, stop: int) -> int:
    """Return the span between the brackets of an object, without the white space at its ends; 0 for no object."""
    if byte(at) != _OPEN:
        return 0
    first, last = blank(at + 1), stop - 1
    while last > first and byte(last - 1) <= _SPACE:
        last -= 1
    return ((first - base) << 32) | (max(last - first, 0))


@compiled
def _has_backslash(at: int, stop: int) -> bool:
    while at < stop:
        marks = word(at) ^ _BACKSLASHES
        marks = (marks - _ONES) & ~marks & _TOPS
        if marks:  # exact for the lowest one
            while byte(at) != _BACKSLASH:
                at += 1
            return at < stop
        at += 8
    return False
