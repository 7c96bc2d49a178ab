"""The recorded events of one rank, as they are written into a trace of several ranks that Perfetto can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.issues import IssueLog
from htagraph.output.export.arrows import FLOWS, start_ns
from htagraph.output.export.event_spans import ARGS, CATEGORY, INSIDE, NAME, PLAIN, SCOPE, event_spans
from htagraph.output.export.event_texts import EventText, EventTexts, as_event, slice_text
from htagraph.output.export.originals import Lane, Original
from htagraph.output.export.path_slices import us_texts
from htagraph.output.export.pids import PidOf
from htagraph.output.export.row_texts import (
    INTEGER,
    MICROSECONDS,
    NO_NUMBER,
    NO_TEXT,
    SPAN,
    TEXT,
    Column,
    row_texts,
)  # fmt: skip
from htagraph.output.export.rows import Rows
from htagraph.output.export.trace_writer import RawEvent, metadata, us
from htagraph.trace.columns import Interner, label
from htagraph.trace.kineto.scan.events import FLAGS, OFFSET, PHASE, START_ABSENT, STOP
from htagraph.trace.kineto.scan.scanner import Block
from htagraph.trace.kineto.source import ahead, iter_bytes
from htagraph.trace.kineto.split import split
from htagraph.trace.kineto.times import padded

__all__ = ["IDS_PER_RANK", "RecordedEvents", "lane_of"]

Written: TypeAlias = RawEvent | bytes | Rows

IDS_PER_RANK = 2**32
"""Ids of arrows that a rank may use; chosen: more than a file has events. Doubled, half as many ranks fit 64 bits."""
_ARROWS_AT_ONCE = 1 << 16
"""Arrows that are written together; chosen: some MB. Doubled, twice the memory, and no faster."""
_NAMING = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
_DURATIONS = ("B", "E")
_NOT_OTHERS = ("X", "M", *FLOWS, *_DURATIONS)
"""Phases of events that are not written as they are, but for their place and time."""
_PIECES = (
    b',"name":', b',"ts":', b',"dur":', b',"cat":', b',"s":', b',"args":', b',"args":{', b',"critical_us":',
    b'"critical_us":', b"}", b"}}",
)  # fmt: skip
_NAME, _TS, _DUR, _CAT, _S, _ARGS, _ARGS_OPEN, _AND_CRITICAL, _CRITICAL, _CLOSE, _CLOSE_BOTH = range(len(_PIECES))
_decoded = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode
_ODD = 0x9E37_79B9_7F4A_7C15  # 2^64 divided by the golden ratio: spreads what it is multiplied by


@dataclass(frozen=True)
class _Drawn:
    """Where and when events of a block are drawn."""

    event: Array
    """Positions in the block."""
    place: Array
    moment: Array
    """ns since the base of what is written."""
    duration: Array
    """ns; `NO_NUMBER` for what has none."""
    critical: Array
    """ns on the critical path."""
    spans: Array
    """See `event_spans`."""

    def of(self, which: Array) -> _Drawn:
        """Return some of them."""
        return _Drawn(*(getattr(self, each.name)[which] for each in fields(self)))

    def joined(self, more: _Drawn) -> _Drawn:
        """Return these and others."""
        return _Drawn(*(np.concatenate((getattr(self, each.name), getattr(more, each.name))) for each in fields(self)))


class RecordedEvents:
    """Yields the events of a file to write, block by block; arrows and the names of tracks come last.

    Args:
        original: the file.
        base_ns: the moment on the common clock to which times are to be relative.
        pid_of: gives processes their numbers.
        critical: for how many ns each slice is on the critical path.
    """

    def __init__(self, original: Original, base_ns: int, pid_of: PidOf, critical: Array) -> None:
        self._original, self._base_ns, self._pid_of, self._critical = original, base_ns, pid_of, critical
        self.left_out = 0
        """Events that were not written: without a time, or of a clock that was hours off."""
        self._names: dict[Lane, str] = {}
        self._processes: dict[int | str, dict[str, str]] = {}
        self._places = Interner[tuple[Lane, int]]()
        places = [self._places[original.lanes[lane], level] for lane, level in original.tracks]
        self._place = np.array(places, np.int64)[original.track]
        """Of each slice: a position in `_places`."""
        ends = np.concatenate((original.arrows.tail, original.arrows.head))
        # an instant is a slice to Perfetto: where an arrow begins or ends it must come behind the arrow
        self._held = np.sort(_codes(self._place[ends], original.start[ends]))
        self._late: list[Written] = []

    def __iter__(self) -> Iterator[list[Written]]:
        log, texts = IssueLog(str(self._original.path)), EventTexts()
        pieces = ahead(iter_bytes(self._original.path, log))
        for first, block in split(pieces, texts, {}, log, texts.scan):
            rows = slice(*np.searchsorted(self._original.index, [first, first + len(block)]).tolist())
            yield self._of_list(block, first, rows) if isinstance(block, list) else self._of_block(block, first, rows)
        yield from self._arrows()
        yield self._late
        yield list(self._track_names())

    def _of_list(self, block: list[EventText | RawEvent], first: int, rows: slice) -> list[Written]:
        """Return what is written of decoded events."""
        written: list[Written] = []
        slices = dict(zip((self._original.index[rows] - first).tolist(), range(rows.start, rows.stop), strict=True))
        for at, event in enumerate(block):
            if at in slices:
                written.append(self._slice(event, slices[at]))
            elif isinstance(event, dict) or event.ph not in FLOWS:
                self._keep(event if isinstance(event, dict) else as_event(event), written)
        return written

    def _of_block(self, block: Block, first: int, rows: slice) -> list[Written]:
        """Return what is written of scanned events: texts of plain ones, and between them what takes more."""
        index, phase = self._original.index[rows] - first, block.rows[:, PHASE]
        not_sliced = np.ones(len(block), np.bool_)
        not_sliced[index] = False
        self.left_out += int(np.count_nonzero(not_sliced & (phase == ord("X"))))
        others = np.flatnonzero(not_sliced & ~np.isin(phase, [ord(each) for each in _NOT_OTHERS]))
        drawn = self._drawn(block, index, rows).joined(self._placed(block, others))
        drawn = drawn.of(np.argsort(drawn.event, kind="stable"))
        plain = _is_plain(block, drawn)
        more = np.sort(np.concatenate((drawn.event[~plain], np.flatnonzero(not_sliced & (phase == ord("M"))))))
        drawn = drawn.of(plain)
        late = drawn.duration == NO_NUMBER
        late[late] = self._is_held(drawn.place[late], drawn.moment[late])
        self._late.append(self._texts(block, drawn.of(late)))
        drawn = drawn.of(~late)
        return self._between(block, drawn, more, dict(zip(index.tolist(), range(rows.start, rows.stop), strict=True)))

    def _between(self, block: Block, drawn: _Drawn, more: Array, row_of: dict[int, int]) -> list[Written]:
        """Return the texts of drawn events, and between them, in the order of the file, some that take more."""
        texts, written, done = self._texts(block, drawn), list[Written](), 0
        cuts = np.searchsorted(drawn.event, more).tolist()
        for at, cut, (start, stop) in zip(
            more.tolist(), cuts, block.rows[more][:, [OFFSET, STOP]].tolist(), strict=True
        ):
            written.append(texts.part(done, cut))
            done = cut
            event = _decoded(block.text[start:stop].tobytes())
            if at in row_of:
                written.append(self._slice(event, row_of[at]))
            else:
                self._keep(event, written)
        return [*written, texts.part(done, len(texts))]

    def _drawn(self, block: Block, index: Array, rows: slice) -> _Drawn:
        """Return where and when the slices of a block are drawn."""
        start, duration = self._original.start[rows] - self._base_ns, self._original.duration[rows]
        return _Drawn(
            index, self._place[rows], start, duration, self._critical[rows], event_spans(block, index),
        )  # fmt: skip

    def _placed(self, block: Block, others: Array) -> _Drawn:
        """Return where and when events that are no slices are drawn; count those that cannot be."""
        moment = self._original.common(start_ns(block, others, unpadded=self._original.unpadded)) - self._base_ns
        usable = (block.rows[others, FLAGS] & START_ABSENT == 0) & (moment >= 0)
        self.left_out += int(np.count_nonzero(~usable))
        others, moment = others[usable], moment[usable]
        pairs, which = np.unique(block.lanes[others], return_inverse=True)
        lanes = [lane_of(*block.lane(pair)) for pair in pairs.tolist()]
        place = np.array([self._places[lane, 0] for lane in lanes], np.int64)[which]
        none = np.zeros(len(others), np.int64)
        return _Drawn(others, place, moment, none + NO_NUMBER, none, event_spans(block, others))

    def _texts(self, block: Block, drawn: _Drawn) -> Rows:
        """Return the texts of plain events."""
        count, spans = len(drawn.event), drawn.spans
        critical = drawn.critical > 0
        letters, head = np.unique(block.rows[drawn.event, PHASE], return_inverse=True)
        is_slice = drawn.duration != NO_NUMBER
        heads = [b'{"ph":"X",', *(b'{"ph":"%c",' % letter for letter in letters.tolist())]
        texts = [*_PIECES, *heads, *self._place_texts()]
        behind_pieces = len(_PIECES)
        some = spans[:, INSIDE] & (2**32 - 1) > 0
        columns = (
            Column(TEXT, behind_pieces + np.where(is_slice, 0, 1 + head)),
            Column(TEXT, behind_pieces + len(heads) + drawn.place),
            Column(TEXT, _NAME), Column(SPAN, spans[:, NAME]),
            Column(TEXT, _TS), Column(MICROSECONDS, drawn.moment),
            Column(TEXT, np.where(is_slice, _DUR, NO_TEXT)), Column(MICROSECONDS, drawn.duration),
            Column(TEXT, np.where(spans[:, CATEGORY], _CAT, NO_TEXT)), Column(SPAN, spans[:, CATEGORY]),
            Column(TEXT, np.where(spans[:, SCOPE], _S, NO_TEXT)), Column(SPAN, spans[:, SCOPE]),
            Column(TEXT, np.where(critical, _ARGS_OPEN, np.where(spans[:, ARGS], _ARGS, NO_TEXT))),
            Column(SPAN, np.where(critical, spans[:, INSIDE], spans[:, ARGS])),
            Column(TEXT, np.where(critical, np.where(some, _AND_CRITICAL, _CRITICAL), NO_TEXT)),
            Column(MICROSECONDS, np.where(critical, drawn.critical, NO_NUMBER)),
            Column(TEXT, np.where(critical, _CLOSE_BOTH, _CLOSE)),
        )  # fmt: skip
        return row_texts(columns, count, texts, block.text)

    def _place_texts(self) -> list[bytes]:
        """Return process and thread of each place, as JSON without the brackets."""
        return [b'"pid":%d,"tid":%d' % self._pid_tid(*place) for place in self._places]

    def _pid_tid(self, lane: Lane, level: int) -> tuple[int, int]:
        return self._pid_of[self._original.rank, lane[0]], self._original.tid(lane, level)

    def _slice(self, event: EventText | RawEvent, row: int) -> RawEvent | bytes:
        """Return a slice where and when it is drawn: as text if nothing else of it changes."""
        original, critical_ns = self._original, int(self._critical[row])
        pid, tid = self._pid_tid(original.lanes[original.lane[row]], int(original.level[row]))
        ts, dur = us_texts(np.array([original.start[row] - self._base_ns, original.duration[row]]))
        if isinstance(event, EventText):
            critical_us = str(us(critical_ns)) if critical_ns else ""
            text = slice_text(event, b'"pid":%d,"tid":%d' % (pid, tid), ts, dur, critical_us)
            if text is not None:
                return text
            event = as_event(event)
        event |= {"ph": "X", "pid": pid, "tid": tid, "ts": Decimal(ts), "dur": Decimal(dur)}
        if not isinstance(event.get("name"), str):
            event["name"] = str(event.get("name", ""))
        if critical_ns:
            args = event.get("args")
            event["args"] = {**(args if isinstance(args, dict) else {}), "critical_us": us(critical_ns)}
        return event

    def _keep(self, event: RawEvent, written: list[Written]) -> None:
        """Add an event that is no slice, if it is written here."""
        lane, phase = lane_of(event.get("pid", ""), event.get("tid", "")), event.get("ph")
        if phase == "M":
            self._learn(event, lane)
            if event.get("name") not in _NAMING:
                written.append(self._at(event, lane))
        elif phase not in (*FLOWS, *_DURATIONS):
            moment = None if phase == "X" else self._common(event.get("ts"))
            if moment is None or moment < self._base_ns:
                self.left_out += 1
                return
            event["ts"] = us(moment - self._base_ns)
            place = np.array([self._places[lane, 0]])
            is_held = self._is_held(place, np.array([moment - self._base_ns]))[0]
            (self._late if is_held else written).append(self._at(event, lane))

    def _is_held(self, place: Array, moment: Array) -> Array:
        """Return whether an arrow begins or ends at each place and moment since the base."""
        if not len(self._held):
            return np.zeros(len(place), np.bool_)
        codes = _codes(place, moment + self._base_ns)
        at = np.minimum(np.searchsorted(self._held, codes), len(self._held) - 1)
        return np.asarray(self._held[at] == codes)

    def _at(self, event: RawEvent, lane: Lane) -> RawEvent:
        event["pid"], event["tid"] = self._pid_tid(lane, 0)
        return event

    def _learn(self, event: RawEvent, lane: Lane) -> None:
        args = event.get("args")
        if isinstance(args, dict):
            name, text = event.get("name"), next(iter(args.values()), "")
            if name == "thread_name":
                self._names[lane] = str(text).strip()
            elif name in ("process_name", "process_labels"):
                self._processes.setdefault(lane[0], {})[name] = str(text)

    def _common(self, raw: object) -> int | None:
        """Return a time in the file as ns on the common clock; None where it is no time."""
        try:
            text = str(raw)
            since_base = round(Decimal(padded(text) if self._original.unpadded else text) * 1000)
            return int(self._original.common(np.array([since_base], np.int64))[0])
        except (InvalidOperation, ValueError, OverflowError):
            return None

    def _arrows(self) -> Iterator[list[Written]]:
        """Yield both ends of each arrow."""
        arrows, original = self._original.arrows, self._original
        encode = msgspec.json.encode
        labels = [
            b'{"ph":"%b","cat":%b,"name":%b,"id":' % (phase, encode(category), encode(name))
            for phase in (b"s", b"f")
            for category, name in arrows.labels
        ]
        texts = [b",", b',"ts":', b"}", b',"bp":"e"}', *labels, *self._place_texts()]
        for first in range(0, len(arrows), _ARROWS_AT_ONCE):
            some = slice(first, first + _ARROWS_AT_ONCE)
            slices = np.stack((arrows.tail[some], arrows.head[some]), axis=1).ravel()
            label_, end = np.repeat(arrows.label[some], 2), np.arange(len(slices)) % 2
            columns = (
                Column(TEXT, 4 + label_ + end * len(arrows.labels)),
                Column(INTEGER, original.rank * IDS_PER_RANK + 1 + first + np.arange(len(slices)) // 2),
                Column(TEXT, 0), Column(TEXT, 4 + len(labels) + self._place[slices]),
                Column(TEXT, 1), Column(MICROSECONDS, original.start[slices] - self._base_ns), Column(TEXT, 2 + end),
            )  # fmt: skip
            yield [row_texts(columns, len(slices), texts)]

    def _track_names(self) -> Iterator[RawEvent]:
        """Yield the names of processes, threads and added tracks."""
        original = self._original
        for pid in dict.fromkeys(original.lanes[number][0] for number, _ in original.tracks):
            labels = self._processes.get(pid, {})
            name, what = labels.get("process_name", ""), labels.get("process_labels", "")
            text = " ".join(
                part for part in (f"rank {original.rank}", what, f"({name} {pid})" if name else f"({pid})") if part
            )
            yield metadata("process_name", self._pid_of[original.rank, pid], 0, name=text)
        for number, level in original.tracks:
            lane = original.lanes[number]
            name = self._names.get(lane) or (f"thread {lane[1]}" if isinstance(lane[1], int) else str(lane[1]))
            yield metadata("thread_name", *self._pid_tid(lane, level), name=f"{name} ({level + 1})" if level else name)


def _is_plain(block: Block, drawn: _Drawn) -> Array:
    """Return which events can be written as text; those that get an argument must have others, and not this one."""
    critical, plain = drawn.critical > 0, drawn.spans[:, PLAIN] == 1
    if critical.any() and b'"critical_us"' in block.text.tobytes():
        plain &= ~critical
    return plain & ~(critical & (drawn.spans[:, INSIDE] == 0)) & (block.rows[drawn.event, PHASE] > 0)


def lane_of(pid: object, tid: object) -> Lane:
    """Return process and thread, as numbers where they are some."""
    return label(pid), label(tid)


def _codes(place: Array, moment: Array) -> npt.NDArray[np.uint64]:
    """Return a number for each place and moment; if two share one, an instant comes late that need not."""
    return (moment.astype(np.uint64) + place.astype(np.uint64)) * np.uint64(_ODD) + place.astype(np.uint64)
