"""The columns of one file while it is read, and decoded events as one of the two ways in which rows come to them."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from pydantic import ValidationError

from htagraph.core.arrays import Array, Mask
from htagraph.core.errors import IssueLog, shown
from htagraph.core.naming import FRAME
from htagraph.trace.columns import (
    TYPECODES,
    ArgumentColumn,
    Events,
    Flows,
    GrowingTable,
    Interner,
    Lane,
    LaneInterner,
    SparseColumn,
    as_array,
    label,
)
from htagraph.trace.kept import Extent, Frames, Sieve
from htagraph.trace.kineto.decode import RawEvent, attribute
from htagraph.trace.kineto.events import (
    HOST_CALLS,
    MODELS,
    BulkField,
    Event,
    call_columns,
    canonical_category,
    columns,
    parse_event,
    stored_fields,
)
from htagraph.trace.kineto.times import NO_TIME, FractionStyle, completed, numbers_to_ns, report_phases, text_to_ns

__all__ = [
    "FIRST_NODE_FLOW",
    "FORWARD_FLOW",
    "LAUNCH_FLOW",
    "OPERATOR_FLOW",
    "WINDOW_END",
    "Columns",
    "add_durations",
    "add_events",
    "add_thread_names",
    "fields_of",
    "is_node_flow",
    "note_window_end",
    "typed",
]

WINDOW_END = "Record Window End"
"""The name of the instant event at the moment when the profiler stopped."""
FORWARD_FLOW, LAUNCH_FLOW = "fwdbwd", "ac2g"
"""Categories of flows: from forward to backward operators, and from calls to device work."""
OPERATOR_FLOW = "cpu_to_"
"""What the categories of flows begin with that the profiler before Kineto wrote, from operators to device work."""
FIRST_NODE_FLOW = 1 << 40
"""The least id of flows between nodes of CUDA graphs, which share the category of flows from launches. Source:
`torch/profiler/_cupti/monitor_trace.py` of PyTorch 2.14.1; ids of launches have 32 bits. Doubled, the flows of the
first 2⁴⁰ dependencies are taken for flows of launches, which nothing reads."""

_LEGACY_CATEGORY = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
_ID_LIMIT = int(np.iinfo(np.int64).max) + 1  # ids of flows are int64: what is not below counts as text


class Columns:
    """What is known of a file so far. `add_events` and `BlockColumns` add to it."""

    def __init__(self, log: IssueLog, frames: Frames | None = None, sieve: Sieve | None = None) -> None:
        self.log, self._sieve = log, sieve
        self.frames = frames or Frames(asked=True)
        self.names = Interner[str]()
        self.categories = Interner[str]()
        self.lanes = LaneInterner()
        self.thread_names: dict[Lane, str] = {}
        self.counts: Counter[str] = Counter()
        self.window_end: tuple[int, int] | None = None
        """When the profiler stopped, ns, and the same with unpadded fractions; None where the file does not say."""
        self.style = FractionStyle()
        self.complete, self.instant = GrowingTable(), GrowingTable()
        self.flow_parts: list[tuple[Array, ...]] = []
        """Id, is a start, lane, time and time with unpadded fractions of flows from forward to backward operators."""
        self.node_flow_parts: list[tuple[Array, ...]] = []
        """The same of flows from node to node of a CUDA graph."""
        self.operator_flow_parts: list[tuple[Array, ...]] = []
        """The same of flows from operators to device work."""
        self.starts: list[tuple[int, int]] = []
        """Number of the first event of each scanned block, position of its text in the document."""
        self.durations: list[tuple[int, RawEvent]] = []
        """Position and event of each begin and end (phases B and E)."""
        self.unreadable: dict[str, str] = {}
        """What is reported of values that an argument's model refuses, by key."""
        self._canonical: dict[object, int] = {}
        self._odd_flow_ids = Interner[int | str]()

    def category(self, written: object, process: object) -> int:
        """Return the number of a category, given as written in the file; old files have a process instead."""
        if written is None:
            name = _LEGACY_CATEGORY.get(process, "") if isinstance(process, str) else ""
            return self.categories[name]
        if written not in self._canonical:
            self._canonical[written] = self.categories[canonical_category(str(written))]
        return self._canonical[written]

    def flow_id(self, value: object) -> int:
        """Return a flow's id as a number: numbers in range as they are, others from -1 downwards."""
        name = label(value)
        return name if isinstance(name, int) and 0 <= name < _ID_LIMIT else -1 - self._odd_flow_ids[name]

    def store(self, part: GrowingTable, column: ArgumentColumn, rows: Array, values: Array) -> None:
        """Add an argument's values for some rows, but for the value that stands for none."""
        if len(rows):
            has = values != (self.names[""] if column.dtype == "str" else column.missing)
            part.add_args(column, rows[has], values[has])

    def see(self, category: Array, start: Array, duration: Array) -> None:
        """Note the times of complete events, of which some may become no rows."""
        if self._sieve is not None:
            self._sieve.see(self, category, start, duration)

    def thin(self, *, last: bool = False) -> None:
        """Drop the complete events that nothing kept needs; `last` once all are known."""
        if self._sieve is not None:
            self._sieve.thin(self, last=last)

    def drop(self, rows: Array) -> None:
        """Drop complete events."""
        self.complete.keep(~rows)

    def sound(self, start: Array, duration: Array, written: Callable[[str, int], object] = lambda key, row: "") -> Mask:
        """Return which events have times that can be, and report the others.

        Times are in ns, `NO_TIME` where there is none; `written` returns what the file has for a key of an event.
        """
        good = np.ones(len(start), np.bool_)
        for key, times, bad in (("ts", start, start == NO_TIME), ("dur", duration, duration < 0)):
            rows = np.flatnonzero(bad & good)
            if len(rows):
                text = f"{times[rows[0]] / 1000:g}" if times[rows[0]] != NO_TIME else str(written(key, int(rows[0])))
                example = f"such as {shown(text)}" if text else "which is absent"
                detail = f"events whose {key!r} cannot be a time in µs, {example}; dropped"
                self.log.add("time_corrupt", self.unreadable.setdefault(key, detail), len(rows))
                good[rows] = False
        return good

    def note_frames(self, is_frame: Array, left_out: Array) -> None:
        """Count calls of Python functions, and take back all of them if they are too many."""
        count = int(np.count_nonzero(is_frame & left_out))
        if self.frames.count(int(np.count_nonzero(is_frame)) - count, count):
            self.drop(as_array(self.complete.columns["category"]) == self.categories[FRAME])

    def note_absent(self, count: int) -> None:
        """Report complete events without a duration."""
        self.log.add("dur_missing", "complete events (ph X) without 'dur'; read as 0", count)

    def recorded_until(self, base: int) -> int | None:
        """Return when the profiler stopped, ns, given what times in the file count from; None where nothing says so."""
        moment = NO_TIME if self.window_end is None else self.window_end[self.style.unpadded]
        return None if moment == NO_TIME else moment + base

    def table(self) -> Events:
        """Return the complete events."""
        return self._finish(self.complete)

    def instants(self) -> Events:
        """Return the instant events that have a category."""
        return self._finish(self.instant)

    def flows(self, extent: Extent) -> Flows:
        """Return the forward-to-backward arrows whose times are no clock errors."""
        return self._flows(self.flow_parts, extent)

    def node_flows(self, extent: Extent) -> Flows:
        """Return the arrows between nodes of CUDA graphs whose times are no clock errors."""
        return self._flows(self.node_flow_parts, extent)

    def operator_flows(self, extent: Extent) -> Flows:
        """Return the arrows from operators to device work whose times are no clock errors."""
        return self._flows(self.operator_flow_parts, extent)

    def _flows(self, parts: list[tuple[Array, ...]], extent: Extent) -> Flows:
        kinds = (np.int64, np.bool_, np.int32, np.int64, np.int64)
        joined = [
            np.concatenate([part[i] for part in parts]) if parts else np.zeros(0, kind) for i, kind in enumerate(kinds)
        ]
        good = extent.holds(joined[3], 0 * joined[3])
        ids, is_start, lane, padded, unpadded = (each[good] for each in joined)
        return Flows(ids, is_start, lane, unpadded if self.style.unpadded else padded)

    def _finish(self, part: GrowingTable) -> Events:
        missing = {bulk.column.name: bulk.column.missing for bulk in (*columns(), *call_columns())}
        args = {}
        for name, (rows, values) in part.args.items():
            absent = missing[name]
            args[name] = SparseColumn(as_array(rows), as_array(values), absent if isinstance(absent, int) else -1)
        return Events(
            index=part.column("index"), name=part.column("name"), category=part.column("category"),
            lane=part.column("lane"), start=part.column("start", unpadded=self.style.unpadded),
            duration=part.column("duration", unpadded=self.style.unpadded), args=args,
        )  # fmt: skip


RawEvents = Any  # a list of raw events, or a dict from position to raw event


def add_events(into: Columns, position: int, events: list[RawEvent]) -> None:
    """Append a block of events; `position` is that of its first event in the file."""
    phases = list(map(attrgetter("ph"), events))
    counts = Counter(phases)
    into.counts.update(counts)
    complete = [i for i, phase in enumerate(phases) if phase == "X"] if counts["X"] < len(events) else None
    _add_table(into, into.complete, position, events, complete)
    if counts["i"] or counts["I"]:
        _add_instants(into, position, events, phases)
    if counts["s"] or counts["f"]:
        _add_flows(into, [event for event in events if event.ph in ("s", "f")])
    if counts["B"] or counts["E"]:
        into.durations += [(position + i, events[i]) for i, phase in enumerate(phases) if phase in ("B", "E")]
    if counts["M"]:
        add_thread_names(into, [event for event in events if event.ph == "M"])


def add_thread_names(into: Columns, events: list[RawEvent]) -> None:
    """Note the names that metadata events give to threads."""
    for event in events:
        if event.name == "thread_name":
            into.thread_names[label(event.pid), label(event.tid)] = str(event.args.thread_name).strip()


def add_durations(into: Columns) -> None:
    """Append the complete events that begins and ends make, once all are known."""
    pairs = completed(into.durations, into.log)
    _add_table(into, into.complete, 0, pairs, list(pairs))
    report_phases(into.counts, into.log)


def _add_instants(into: Columns, position: int, events: list[RawEvent], phases: list[str]) -> None:
    where = [i for i, phase in enumerate(phases) if phase in ("i", "I") and events[i].cat is not None]
    _add_table(into, into.instant, position, events, where)
    pairs = zip(phases, events, strict=True)
    note_window_end(into, [event for phase, event in pairs if phase in ("i", "I") and event.name == WINDOW_END])


def note_window_end(into: Columns, events: list[RawEvent]) -> None:
    """Note when the profiler stopped, as the events of that name say; of several, the last one counts."""
    if not events:
        return
    padded, unpadded = _times(into, events, "ts")
    padded_before, unpadded_before = into.window_end or (NO_TIME, NO_TIME)
    into.window_end = (
        max(padded_before, int(padded.max())),
        max(unpadded_before, int(unpadded.max())),
    )


def _add_table(into: Columns, part: GrowingTable, position: int, events: RawEvents, where: list[int] | None) -> None:
    chosen: list[RawEvent] = events if where is None else [events[i] for i in where]
    if not chosen:
        return
    of_complete = part is into.complete  # only these have a duration
    index = np.arange(len(chosen), dtype=np.int32) if where is None else np.array(where, dtype=np.int32)
    starts = _times(into, chosen, "ts")
    durations = _times(into, chosen, "dur") if of_complete else (np.zeros(len(chosen), np.int64),) * 2
    good = into.sound(starts[0], durations[0], lambda key, row: _written(getattr(chosen[row], key)))
    if not good.all():
        chosen, index, starts, durations = _some(good, chosen, index, starts, durations)
    category = _category_ids(into, chosen)
    if of_complete:
        into.see(category, starts[0], durations[0])
    is_frame = category == (into.categories.get(FRAME, -1) if of_complete else -1)
    left_out = into.frames.left_out_of(is_frame, starts[0], durations[0])
    if left_out.any():
        chosen, index, starts, durations = _some(~left_out, chosen, index, starts, durations)
        category = category[~left_out]
    lane = _ids(into.lanes, map(attrgetter("pid", "tid"), chosen), len(chosen))
    called = list(map(attrgetter("name"), chosen))
    names = _ids(into.names, called if set(map(type, called)) == {str} else map(str, called), len(called))
    first = part.add_rows((index + np.int32(position), names, category, lane), starts, durations)
    if chosen:
        _add_args(into, part, first, chosen, category)
        if hasattr(chosen[0].args, call_columns()[0].column.name):
            _add_call_args(into, part, first, chosen)
    into.note_frames(is_frame, left_out)


def _some(
    stays: Mask, events: list[RawEvent], index: Array, *times: tuple[Array, Array]
) -> tuple[list[RawEvent], Array, tuple[Array, Array], tuple[Array, Array]]:
    """Return some of the events, with their positions, and both readings of their starts and durations."""
    starts, durations = ((padded[stays], unpadded[stays]) for padded, unpadded in times)
    return [events[i] for i in np.flatnonzero(stays).tolist()], index[stays], starts, durations


def _times(into: Columns, events: list[RawEvent], key: str) -> tuple[Array, Array]:
    """Return both readings of the times that events have for a key, ns; an absent duration is 0."""
    raw = list(map(attrgetter(key), events))
    if msgspec.Raw in set(map(type, raw)):
        raw = [_written(value) or None for value in raw]
    if None in raw:
        into.note_absent(raw.count(None) if key == "dur" else 0)
        raw = [(0 if key == "dur" else math.nan) if value is None else value for value in raw]
    try:
        values = numbers_to_ns(raw) if set(map(type, raw)) <= {int, float} else None
    except OverflowError:
        values = None
    return text_to_ns(list(map(str, raw)), into.style) if values is None else (values, values)


def _written(time: Any) -> str:  # noqa: ANN401 - text, or the number that it was read as
    """Return a time as decimal text: in a damaged block, events before the first exact time were read as numbers."""
    text = bytes(time).decode() if type(time) is msgspec.Raw else "" if time is None else str(time)
    return "" if text == "null" else text.strip('"') or text


def _category_ids(into: Columns, events: list[RawEvent]) -> Array:
    raw = list(map(attrgetter("cat"), events))
    # in the file's order, so that numbers do not change from run to run
    numbers = {cat: into.category(cat, None) for cat in dict.fromkeys(raw) if cat is not None}
    if None in raw:
        of_process = {pid: into.category(None, pid) for pid in dict.fromkeys(e.pid for e in events if e.cat is None)}
        of_events = [of_process[e.pid] if e.cat is None else numbers[e.cat] for e in events]
        return np.array(of_events, dtype=np.int32)
    return _ids(numbers, raw, len(raw))


def _add_args(into: Columns, part: GrowingTable, first: int, events: list[RawEvent], category: Array) -> None:
    names = list(into.categories)
    by_category = np.argsort(category, kind="stable")
    codes, starts = np.unique(category[by_category], return_index=True)
    for code, rows in zip(codes.tolist(), np.split(by_category, starts)[1:], strict=True):
        of_category = [events[i] for i in rows.tolist()] if len(rows) < len(events) else events
        args = list(map(attrgetter("args"), of_category))
        for name, bulk in fields_of(names[code]):
            values = list(map(attrgetter(name), args))
            if values.count(bulk.column.missing) == len(values):
                continue
            into.store(part, bulk.column, (rows + first).astype(np.int32), typed(into, values, bulk, of_category))


def _add_call_args(into: Columns, part: GrowingTable, first: int, events: list[RawEvent]) -> None:
    names = list(map(attrgetter("name"), events))
    rows = [i for i, name in enumerate(names) if type(name) is str and name.startswith(HOST_CALLS)]
    for bulk in call_columns():
        texts = [bytes(getattr(events[i].args, bulk.column.name)).decode("utf-8", "replace") for i in rows]
        has = [i for i, text in enumerate(texts) if text]
        typed = _ids(into.names, [texts[i] for i in has], len(has))
        part.add_args(bulk.column, np.array([rows[i] + first for i in has], np.int32), typed)


def typed(into: Columns, values: list[Any], bulk: BulkField, events: list[RawEvent]) -> Array:
    """Return argument values as an array; values of another type go through the event's model."""
    if bulk.column.dtype == "str":
        if set(map(type, values)) != {str}:
            values = [_by_model(into, value, bulk, event) for value, event in zip(values, events, strict=True)]
        return _ids(into.names, values, len(values))
    code = TYPECODES[bulk.column.dtype]
    try:
        packed = array(code, values)
    except (TypeError, OverflowError):
        modelled = [_by_model(into, v, bulk, event) for v, event in zip(values, events, strict=True)]
        packed = array(code, modelled if code == "d" else _in_range(into, modelled, bulk))
    return np.frombuffer(packed, dtype=bulk.column.dtype)


def _in_range(into: Columns, values: list[Any], bulk: BulkField) -> list[int]:
    """Return the values, with `missing` in place of those that do not fit into 64 bits."""
    limits = np.iinfo(bulk.column.dtype)
    fits = [isinstance(value, int) and limits.min <= value <= limits.max for value in values]
    detail = f"argument {bulk.keys[0]!r} has values beyond 64 bits; treated as missing"
    into.log.add("value_out_of_range", detail, fits.count(False))
    missing = int(bulk.column.missing)
    return [value if good else missing for value, good in zip(values, fits, strict=True)]


def _add_flows(into: Columns, events: list[RawEvent]) -> None:
    kind_of = {cat: canonical_category(str(cat)) for cat in {event.cat for event in events}}
    if FORWARD_FLOW in kind_of.values():
        forward = [event for event in events if kind_of[event.cat] == FORWARD_FLOW and event.id is not None]
        _add_flow_part(into, into.flow_parts, forward)
    if LAUNCH_FLOW in kind_of.values():
        of_launches = [event for event in events if kind_of[event.cat] == LAUNCH_FLOW]
        between_nodes = [event for event in of_launches if event.id is not None and is_node_flow(event.id)]
        _add_flow_part(into, into.node_flow_parts, between_nodes)
    if any(str(category).startswith(OPERATOR_FLOW) for category in kind_of):
        of_operators = [event for event in events if str(event.cat).startswith(OPERATOR_FLOW)]
        with_id = [event for event in of_operators if event.id is not None]
        _add_flow_part(into, into.operator_flow_parts, with_id)


def is_node_flow(written: object) -> bool:
    """Return True if the id of a launch's flow, as written in the file, says that it leads from node to node."""
    number = label(written)
    return isinstance(number, int) and FIRST_NODE_FLOW <= number < _ID_LIMIT


def _add_flow_part(into: Columns, parts: list[tuple[Array, ...]], chosen: list[RawEvent]) -> None:
    if not chosen:
        return
    padded, unpadded = _times(into, chosen, "ts")
    good = into.sound(padded, np.zeros(len(chosen), np.int64), lambda key, row: _written(getattr(chosen[row], key)))
    sound = [chosen[i] for i in np.flatnonzero(good).tolist()]
    ids = np.array([into.flow_id(event.id) for event in sound], dtype=np.int64)
    is_start = np.array([event.ph == "s" for event in sound], dtype=np.bool_)
    lanes = _ids(into.lanes, map(attrgetter("pid", "tid"), sound), len(sound))
    parts.append((ids, is_start, lanes, padded[good], unpadded[good]))


def fields_of(category: str) -> tuple[tuple[str, BulkField], ...]:
    """Return (attribute of the args struct, field with one key) for every key of a category's events.

    Today's key comes last, so that it wins where an event has an older one too.
    """
    return _fields_of_model(MODELS.get(category, MODELS["kernel"]))


@cache
def _fields_of_model(model: type[Event]) -> tuple[tuple[str, BulkField], ...]:
    own = {(field.column, key) for _, field, of_calls in stored_fields(model) if not of_calls for key in field.keys}
    return tuple(
        (attribute(bulk, i), bulk._replace(keys=(key,)))
        for bulk in columns()
        for i, key in reversed(tuple(enumerate(bulk.keys)))
        if (bulk.column, key) in own
    )


def _ids(interner: Mapping[Any, int], keys: Iterable[Any], count: int) -> Array:
    return np.fromiter(map(interner.__getitem__, keys), dtype=np.int32, count=count)


def _by_model(into: Columns, value: object, bulk: BulkField, event: RawEvent) -> Any:  # noqa: ANN401 - by column
    """Return an argument's value as the event's pydantic model reads it; `missing` if the model refuses it."""
    try:
        parsed = parse_event({"ph": "X", "cat": event.cat, "name": str(event.name), "args": {bulk.keys[0]: value}})
    except ValidationError:
        detail = f"argument {bulk.keys[0]!r} has values of another type, such as {shown(value)}; treated as missing"
        into.log.add("value_unreadable", into.unreadable.setdefault(bulk.keys[0], detail))
        return bulk.column.missing
    name = next((name for name, field, _ in stored_fields(type(parsed)) if field.column == bulk.column), "")
    read = getattr(parsed.args, name, None)
    return bulk.column.missing if read is None else read
