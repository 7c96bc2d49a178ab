"""The recorded events of one rank in Perfetto's native format, block by block as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.issues import IssueLog
from htagraph.graph.activities import Lane as GraphLane
from htagraph.output.export.arrows import FLOWS
from htagraph.output.export.event_batches import COUNT, Slices, Values
from htagraph.output.export.event_spans import ARGS, INSIDE, event_spans
from htagraph.output.export.event_texts import EventText, EventTexts, as_event
from htagraph.output.export.originals import Lane, Original
from htagraph.output.export.packet_order import held_back
from htagraph.output.export.packet_writer import PacketWriter
from htagraph.output.export.pids import PidOf
from htagraph.output.export.recorded_events import IDS_PER_RANK, RecordedEvents, lane_of
from htagraph.output.export.row_texts import MICROSECONDS, NO_NUMBER, NO_TEXT, SPAN, TEXT, Column, row_texts
from htagraph.output.export.trace_writer import RawEvent, metadata, us
from htagraph.trace.columns import Interner
from htagraph.trace.kineto.scan.events import OFFSET, PHASE, STOP
from htagraph.trace.kineto.scan.scanner import Block
from htagraph.trace.kineto.source import ahead, iter_bytes
from htagraph.trace.kineto.split import split

__all__ = ["RecordedPackets"]

_Drawable: TypeAlias = tuple[int, str, str, bytes]  # row, name, category, arguments as JSON

_INSTANTS = ("i", "I", "R")
_ELSEWHERE = ("X", "M", "B", "E", *FLOWS)
"""Phases of events that are slices, names of tracks, or ends of arrows."""
_LENGTH = 2**32 - 1  # of a span: its lower half
_encode = msgspec.json.Encoder(decimal_format="number").encode


class RecordedPackets(RecordedEvents):
    """Writes the events of a file.

    Args:
        original: the file.
        base_ns: the moment on the common clock to which times are to be relative.
        pid_of: gives processes their numbers; one for all of a rank.
        critical: for how many ns each slice is on the critical path.
        lanes: of the rank, by process and thread in the file.
    """

    def __init__(
        self, original: Original, base_ns: int, pid_of: PidOf, critical: Array, lanes: Mapping[Lane, GraphLane]
    ) -> None:
        super().__init__(original, base_ns, pid_of, critical)
        self._pid, self._lanes = pid_of[original.rank, ""], lanes
        arrows = original.arrows
        ends, count = np.concatenate((arrows.tail, arrows.head)), len(original.start)
        ids = np.tile(original.rank * IDS_PER_RANK + 1 + np.arange(len(arrows)), 2)
        first = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=count))))
        self._flows = ids[np.argsort(ends, kind="stable")], first.astype(np.int64)
        self._back = held_back(original.track, original.start, original.duration, (arrows.tail, arrows.head))
        self._is_back = np.zeros(count, np.bool_)
        self._is_back[self._back] = True
        self._kept: dict[int, Array] = {}
        self.not_drawn = 0
        """Events of phases that are not written in this format."""

    def write(self, writer: PacketWriter) -> None:
        """Write all events."""
        original, log, texts = self._original, IssueLog(str(self._original.path)), EventTexts()
        writer.add_ends(self._track_ids(), self._place, original.start - self._base_ns, original.duration)
        for first, block in split(ahead(iter_bytes(original.path, log)), texts, {}, log, texts.scan):
            rows = slice(*np.searchsorted(original.index, [first, first + len(block)]).tolist())
            index = original.index[rows] - first
            if isinstance(block, list):
                self._list(writer, block, index, rows)
            else:
                self._block(writer, block, index, rows)
        for row in self._back.tolist():
            writer.write(self._kept[row])
        writer.add(self._track_names())

    def _track_ids(self) -> list[tuple[int, int]]:
        return [(self._pid, number) for number in range(len(self._places))]

    def _begin(self, writer: PacketWriter, slices: Slices, rows: slice) -> None:
        """Write where the slices of some rows begin; keep those that must come behind all others."""
        ids, first = self._flows
        packets, starts = writer.begins(slices, (ids, first[rows.start : rows.stop + 1]))
        done = 0
        for at in np.flatnonzero(self._is_back[rows]).tolist():
            writer.write(packets[starts[done] : starts[at]])
            self._kept[rows.start + at] = packets[starts[at] : starts[at + 1]].copy()
            done = at + 1
        writer.write(packets[starts[done] :])

    def _block(self, writer: PacketWriter, block: Block, index: Array, rows: slice) -> None:
        """Write scanned events."""
        phase = block.rows[:, PHASE]
        other = np.ones(len(block), np.bool_)
        other[index] = False
        self.left_out += int(np.count_nonzero(other & (phase == ord("X"))))
        self._begin(writer, self._slices(block, index, rows), rows)
        for at in np.flatnonzero(other & (phase == ord("M"))).tolist():
            self._other(writer, _event(block, at))
        others = np.flatnonzero(other & ~np.isin(phase, [ord(each) for each in _ELSEWHERE]))
        is_instant = np.isin(phase[others], [ord(each) for each in _INSTANTS])
        drawn = self._placed(block, others[is_instant])
        texts, name, category = _labels(block, drawn.event)
        writer.add_begins(
            Slices(
                self._track_ids(), texts, drawn.place, drawn.moment, drawn.duration, name, category,
                _objects(drawn.spans), block.text,
            ),
            _no_flows(len(drawn.event)),
        )  # fmt: skip
        for at in others[~is_instant].tolist():
            self._other(writer, _event(block, at))

    def _slices(self, block: Block, index: Array, rows: slice) -> Slices:
        spans = event_spans(block, index)
        texts, name, category = _labels(block, index)
        args, source, critical = _objects(spans), block.text, self._critical[rows]
        on_path = np.flatnonzero(critical > 0)
        if len(on_path):
            marked = _marked(block.text, spans[on_path, INSIDE], critical[on_path])
            args[on_path] = marked.spans + (len(source) << 32)
            source = np.concatenate((source, marked.text))
        start, duration = self._original.start[rows] - self._base_ns, self._original.duration[rows]
        return Slices(self._track_ids(), texts, self._place[rows], start, duration, name, category, args, source)

    def _list(self, writer: PacketWriter, block: Sequence[EventText | RawEvent], index: Array, rows: slice) -> None:
        """Write decoded events."""
        events = [event if isinstance(event, dict) else as_event(event) for event in block]
        texts, args = Interner[str](), list[bytes]()
        name, category = list[int](), list[int]()
        for at, critical_ns in zip(index.tolist(), self._critical[rows].tolist(), strict=True):
            event = events[at]
            name.append(texts[str(event.get("name", ""))])
            category.append(texts[str(event["cat"])] if event.get("cat") else -1)
            values = event.get("args") if isinstance(event.get("args"), dict) else {}
            args.append(_encode({**values, "critical_us": us(critical_ns)} if critical_ns else values))
        ends = np.cumsum([0, *map(len, args)], dtype=np.int64)
        slices = Slices(
            self._track_ids(), list(texts), self._place[rows], self._original.start[rows] - self._base_ns,
            self._original.duration[rows], np.array(name, np.int64), np.array(category, np.int64),
            (ends[:-1] << 32) | np.diff(ends), np.frombuffer(b"".join(args), np.uint8),
        )  # fmt: skip
        self._begin(writer, slices, rows)
        taken = set(index.tolist())
        for at, event in enumerate(events):
            if at not in taken and event.get("ph") not in (*FLOWS, "B", "E"):
                self._other(writer, event)

    def _other(self, writer: PacketWriter, event: RawEvent) -> None:
        """Write an event that is no slice, if this format has a form for it."""
        phase, args = event.get("ph"), event.get("args")
        if phase in ("M", "X"):
            self._keep(event, [])  # which learns names, and counts slices without a time
            return
        if phase not in (*_INSTANTS, "C"):
            self.not_drawn += 1
            return
        moment = self._common(event.get("ts"))
        if moment is None or moment < self._base_ns:
            self.left_out += 1
        elif phase == "C":
            writer.add(self._values(event, moment - self._base_ns))
        else:
            place = self._places[lane_of(event.get("pid", ""), event.get("tid", "")), 0]
            text = np.frombuffer(_encode(args if isinstance(args, dict) else {}), np.uint8)
            at, none = np.array([moment - self._base_ns]), np.zeros(1, np.int64)
            names = [str(event.get("name", "")), str(event.get("cat", ""))]
            one = Slices(
                self._track_ids(), names, np.array([place]), at, none + NO_NUMBER, none, none + (1 if names[1] else -1),
                none + len(text), text,
            )  # fmt: skip
            writer.add_begins(one, _no_flows(1))

    def _values(self, event: RawEvent, moment: int) -> Iterator[Values]:
        args = event.get("args")
        for series, value in (args if isinstance(args, dict) else {}).items():
            try:
                number = float(value)
            except (TypeError, ValueError):
                self.not_drawn += 1
                continue
            name = str(event.get("name", ""))
            yield Values(self._pid, name, str(series), COUNT, np.array([moment]), np.array([number]))

    def _track_names(self) -> Iterator[RawEvent]:
        """Yield the name of the rank, and the names and the order of its tracks."""
        several = len({lane.device for lane in self._lanes.values() if lane.device >= 0}) > 1
        yield metadata("process_name", self._pid, 0, name=f"rank {self._original.rank}")
        order = sorted((self._sort_key(*place), number) for place, number in self._places.items())
        places = list(self._places)
        for position, (_, number) in enumerate(order):
            lane, level = places[number]
            unnamed = f"thread {lane[1]}" if isinstance(lane[1], int) else str(lane[1]) or "without a thread"
            name = self._names.get(lane) or unnamed
            device = self._lanes[lane].device if lane in self._lanes else -1
            name = f"device {device} {name}" if several and device >= 0 else name
            yield metadata("thread_name", self._pid, number, name=f"{name} ({level + 1})" if level else name)
            yield metadata("thread_sort_index", self._pid, number, sort_index=position)

    def _sort_key(self, lane: Lane, level: int) -> tuple[int, int, int, str, int]:
        """Return where a track stands: threads, the main one first, before streams before what is neither."""
        known = self._lanes.get(lane)
        if known is not None and known.device >= 0:
            return 1, known.device, known.stream, "", level
        pid, tid = lane
        is_thread = isinstance(pid, int) and isinstance(tid, int)
        return 0 if is_thread else 2, int(pid != tid), tid if isinstance(tid, int) else 0, str(lane), level


def _event(block: Block, at: int) -> RawEvent:
    start, stop = block.rows[at, [OFFSET, STOP]].tolist()
    return dict(msgspec.json.decode(block.text[start:stop].tobytes()))


def _labels(block: Block, index: Array) -> tuple[list[str], Array, Array]:
    """Return names and categories of some events of a block: texts, and of each event the position of both in them."""
    tokens, which = np.unique(np.stack((block.names[index], block.categories[index])), return_inverse=True)
    texts = ["" if block.values[token] is None else str(block.values[token]) for token in tokens.tolist()]
    name, category = which.reshape(2, -1).astype(np.int64)
    for at in np.flatnonzero(block.rows[index, PHASE] != ord("X")).tolist():
        event = _event(block, int(index[at]))
        name[at], category[at] = len(texts), len(texts) + 1
        texts += [str(event.get("name", "")), str(event.get("cat", ""))]
    absent = np.array([text == "" for text in texts], np.bool_)
    return texts, name, np.where(absent[category], -1, category)


def _objects(spans: Array) -> Array:
    """Return where arguments are, 0 for those that are no object: they have no names."""
    return np.where(spans[:, INSIDE], spans[:, ARGS], 0)


def _marked(text: Array, inside: Array, critical: Array) -> Any:  # noqa: ANN401 - Rows
    """Return arguments as JSON with the time on the critical path."""
    columns = (
        Column(TEXT, 0), Column(SPAN, inside), Column(TEXT, np.where(inside & _LENGTH, 1, NO_TEXT)), Column(TEXT, 2),
        Column(MICROSECONDS, critical), Column(TEXT, 3),
    )  # fmt: skip
    return row_texts(columns, len(inside), [b"{", b",", b'"critical_us":', b"}"], text)


def _no_flows(count: int) -> tuple[Array, Array]:
    return np.zeros(0, np.int64), np.zeros(count + 1, np.int64)
