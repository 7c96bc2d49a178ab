"""JSON text of events → columns. The decoder's types are generated from the models in `trace.events`: one schema."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from pydantic import ValidationError

from htagraph.core.errors import shown
from htagraph.core.issues import IssueLog
from htagraph.trace.columns import Array, Flows, Lane, SparseColumn, Table
from htagraph.trace.events import (
    HOST_BACKENDS,
    HOST_CALLS,
    MODELS,
    BulkField,
    call_columns,
    canonical_category,
    columns,
    parse_event,
)
from htagraph.trace.reading.growing import TYPECODES, GrowingTable, Interner, LaneInterner, as_array, extend, label
from htagraph.trace.reading.pairs import completed, report_phases
from htagraph.trace.reading.times import EXACT_FLOAT_US, FractionStyle, numbers_to_ns, text_to_ns

__all__ = ["BlockDecoder", "Columns", "event_decoder", "event_text_decoder"]

Events = Any  # a list of raw events, or a dict from position to raw event
RawEvent = Any  # the generated struct: attributes ph, name, cat, pid, tid, ts, dur, id, args
_LEGACY_CATEGORY = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
_ID_LIMIT = 2**63  # ids of flows are int64: what is not below counts as text
_Label = int | float | str | None  # no list or object: those cannot be dictionary keys


class BlockDecoder:
    """Decodes the text of a JSON array of events.

    Times are floats until one would lose nanoseconds; from that block on, they are exact decimals. Arguments of calls
    (`call_columns`) are decoded only if the file's header names a backend that communicates on host threads.

    Args:
        header: the root keys before the events, complete when the first block comes; without it, no arguments of calls.
    """

    def __init__(self, header: Mapping[str, Any] | None = None) -> None:
        self._header = header
        self.exact = False

    def __call__(self, text: bytes) -> list[RawEvent]:
        """Return the events of a JSON array.

        Raises:
            msgspec.DecodeError: the text is not a JSON array of objects.
        """
        if not self.exact:
            events: list[RawEvent] = self._fast.decode(text)
            self.exact = _need_text([event.ts for event in events])
            if not self.exact:
                return events
        return self._exact.decode(text)

    @cached_property
    def _fast(self) -> msgspec.json.Decoder[list[RawEvent]]:
        return msgspec.json.Decoder(list[_event_struct(Any, calls=self._of_calls)])  # type: ignore[misc]

    @cached_property
    def _exact(self) -> msgspec.json.Decoder[list[RawEvent]]:
        return msgspec.json.Decoder(list[_event_struct(msgspec.Raw, calls=self._of_calls)])  # type: ignore[misc]

    @cached_property
    def _of_calls(self) -> bool:
        job = str((self._header or {}).get("distributedInfo", ""))
        return any(backend in job for backend in HOST_BACKENDS)


def event_decoder() -> Callable[[bytes], list[dict[str, Any]]]:
    """Return a decoder of complete events as dicts; numbers with a fraction become exact decimals."""
    from decimal import Decimal

    strict, whole = BlockDecoder(), msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode

    def decode(text: bytes) -> list[dict[str, Any]]:
        strict(text)  # refuse what bulk decoding refuses, so that both number the events alike
        return whole(text)

    return decode


def event_text_decoder() -> Callable[[bytes], list[msgspec.Raw]]:
    """Return a decoder that splits a JSON array into one text per event, numbered as in bulk decoding."""
    strict, apart = BlockDecoder(), msgspec.json.Decoder(list[msgspec.Raw]).decode

    def decode(text: bytes) -> list[msgspec.Raw]:
        strict(text)
        return apart(text)

    return decode


def _need_text(times: list[Any]) -> bool:
    """Return True if a time would lose nanoseconds as a float, or is text."""
    kinds = set(map(type, times))
    return str in kinds or (float in kinds and any(type(t) is float and abs(t) >= EXACT_FLOAT_US for t in times))


@cache
def _event_struct(time: type, *, calls: bool) -> type[msgspec.Struct]:
    """Return the struct type of an event: the envelope, and in `args` all arguments that have a column."""
    args = _args_struct(calls=calls)
    none_yet = args()
    envelope: list[Any] = [
        ("ph", str, ""), ("name", Any, ""), ("cat", _Label, None), ("pid", _Label, ""), ("tid", _Label, ""),
        ("ts", time, msgspec.Raw(b"") if time is msgspec.Raw else None),
        ("dur", time, msgspec.Raw(b"") if time is msgspec.Raw else None),
        ("id", Any, None), ("args", args, none_yet),
    ]  # fmt: skip
    return msgspec.defstruct("BulkEvent", envelope, gc=False)


@cache
def _args_struct(*, calls: bool) -> type[msgspec.Struct]:
    fields: list[Any] = [
        (_attribute(bulk, i), Any, bulk.column.missing) for bulk in columns() for i in range(len(bulk.keys))
    ]
    texts = call_columns() if calls else ()
    fields += [(_attribute(bulk, 0), msgspec.Raw, msgspec.Raw(b"")) for bulk in texts]  # their text, not decoded
    keys = {_attribute(bulk, i): key for bulk in columns() for i, key in enumerate(bulk.keys)}
    keys |= {_attribute(bulk, 0): bulk.keys[0] for bulk in texts}
    fields.append(("thread_name", Any, ""))  # the args of metadata events
    keys["thread_name"] = "name"
    return msgspec.defstruct("BulkArgs", fields, rename=keys, gc=False, frozen=True)


def _attribute(bulk: BulkField, number: int) -> str:
    return bulk.column.name if number == 0 else f"{bulk.column.name}_{number}"


@cache
def _fields_of(category: str) -> tuple[tuple[str, BulkField], ...]:
    """Return (attribute of the args struct, field with one key) for every key of a category's events.

    Today's key comes last, so that it wins where an event has an older one too.
    """
    model = MODELS.get(category, MODELS["kernel"]).model_fields["args"].annotation
    own = {
        (column, key)
        for field in getattr(model, "model_fields", {}).values()
        for column in field.metadata
        for key in getattr(field.validation_alias, "choices", ())
    }
    return tuple(
        (_attribute(bulk, i), replace(bulk, keys=(key,)))
        for bulk in columns()
        for i, key in reversed(tuple(enumerate(bulk.keys)))
        if (bulk.column, key) in own
    )


class Columns:
    """Collects decoded events into columns, block by block."""

    def __init__(self, log: IssueLog) -> None:
        self.log = log
        self.names = Interner[str]()
        self.categories = Interner[str]()
        self.lanes = LaneInterner()
        self.thread_names: dict[Lane, str] = {}
        self.counts: Counter[str] = Counter()
        self.window_end_seen = False
        self.style = FractionStyle()
        self._canonical: dict[object, int] = {}
        self._complete, self._instant = GrowingTable(), GrowingTable()
        self._flow: list[tuple[Array, ...]] = []
        self._odd_flow_ids = Interner[int | str]()
        self._durations: list[tuple[int, RawEvent]] = []  # begins and ends
        self._unreadable: dict[str, str] = {}

    def add(self, position: int, events: list[RawEvent]) -> None:
        """Append a block of events; `position` is that of its first event in the file."""
        phases = list(map(attrgetter("ph"), events))
        counts = Counter(phases)
        self.counts.update(counts)
        complete = [i for i, phase in enumerate(phases) if phase == "X"] if counts["X"] < len(events) else None
        self._add_table(self._complete, position, events, complete)
        if counts["i"] or counts["I"]:
            self._add_instants(position, events, phases)
        if counts["s"] or counts["f"]:
            self._add_flows([event for event in events if event.ph in ("s", "f")])
        if counts["B"] or counts["E"]:
            self._durations += [(position + i, events[i]) for i, phase in enumerate(phases) if phase in ("B", "E")]
        if counts["M"]:
            self._add_thread_names([event for event in events if event.ph == "M"])

    def table(self) -> Table:
        """Return the complete events, those that begins and ends make last."""
        pairs = completed(self._durations, self.log)
        self._add_table(self._complete, 0, pairs, list(pairs))
        report_phases(self.counts, self.log)
        return self._finish(self._complete)

    def instants(self) -> Table:
        """Return the instant events that have a category."""
        return self._finish(self._instant)

    def flows(self) -> Flows:
        """Return the forward-to-backward arrows."""
        kinds = (np.int64, np.bool_, np.int32, np.int64, np.int64)
        joined = [
            np.concatenate([part[i] for part in self._flow]) if self._flow else np.zeros(0, kind)
            for i, kind in enumerate(kinds)
        ]
        time = joined[4] if self.style.unpadded else joined[3]
        return Flows(id=joined[0], is_start=joined[1], lane=joined[2], time=time)

    def _add_instants(self, position: int, events: list[RawEvent], phases: list[str]) -> None:
        where = [i for i, phase in enumerate(phases) if phase in ("i", "I") and events[i].cat is not None]
        self._add_table(self._instant, position, events, where)
        self.window_end_seen |= any(
            phase in ("i", "I") and event.name == "Record Window End"
            for phase, event in zip(phases, events, strict=True)
        )

    def _add_table(self, part: GrowingTable, position: int, events: Events, where: list[int] | None) -> None:
        chosen: list[RawEvent] = events if where is None else [events[i] for i in where]
        if not chosen:
            return
        count = len(chosen)
        index = np.arange(count, dtype=np.int32) if where is None else np.array(where, dtype=np.int32)
        category = self._category_ids(chosen)
        first = part.count
        for column, values in (
            ("index", index + np.int32(position)),
            ("name", self._name_ids(list(map(attrgetter("name"), chosen)))),
            ("category", category),
            ("lane", _ids(self.lanes, map(attrgetter("pid", "tid"), chosen), count)),
        ):
            extend(part.columns[column], values)
        part.add_times("start", *self._times(list(map(attrgetter("ts"), chosen)), "ts"))
        what = "dur" if part is self._complete else ""  # an instant has none
        part.add_times("duration", *self._times(list(map(attrgetter("dur"), chosen)), what))
        self._add_args(part, first, chosen, category)
        if hasattr(chosen[0].args, call_columns()[0].column.name):
            self._add_call_args(part, first, chosen)

    def _times(self, raw: list[Any], what: str) -> tuple[Array, Array]:
        if raw and type(raw[0]) is msgspec.Raw:
            texts = [bytes(value).decode() for value in raw]
            absent = [text in ("", "null") for text in texts]
            texts = ["0" if gone else text for gone, text in zip(absent, texts, strict=True)] if any(absent) else texts
            self._note_absent(sum(absent), what)
            return text_to_ns(texts, self.style)
        if None in raw:
            self._note_absent(raw.count(None), what)
            raw = [0 if value is None else value for value in raw]
        try:
            values = numbers_to_ns(raw)
        except (TypeError, ValueError, OverflowError):
            values = text_to_ns([str(value) for value in raw], self.style)[0]
        return values, values

    def _note_absent(self, count: int, what: str) -> None:
        if what:
            self.log.add(f"{what}_missing", f"complete events (ph X) without {what!r}; read as 0", count)

    def _name_ids(self, names: list[Any]) -> Array:
        return _ids(self.names, names if set(map(type, names)) == {str} else map(str, names), len(names))

    def _category_ids(self, events: list[RawEvent]) -> Array:
        raw = list(map(attrgetter("cat"), events))
        for cat in dict.fromkeys(raw):  # in the file's order, so that numbers do not change from run to run
            if cat is not None and cat not in self._canonical:
                self._canonical[cat] = self.categories[canonical_category(str(cat))]
        if None in raw:
            legacy = {e.pid for e in events if e.cat is None and isinstance(e.pid, str)}
            ids = {pid: self.categories[_LEGACY_CATEGORY.get(pid, "")] for pid in legacy}
            unknown = self.categories[""]
            numbers = [ids.get(e.pid, unknown) if e.cat is None else self._canonical[e.cat] for e in events]
            return np.array(numbers, dtype=np.int32)
        return _ids(self._canonical, raw, len(raw))

    def _add_args(self, part: GrowingTable, first: int, events: list[RawEvent], category: Array) -> None:
        names = list(self.categories)
        for code in np.flatnonzero(np.bincount(category)):
            rows = np.flatnonzero(category == code)
            of_category = [events[i] for i in rows.tolist()] if len(rows) < len(events) else events
            args = list(map(attrgetter("args"), of_category))
            for attribute, bulk in _fields_of(names[code]):
                values = list(map(attrgetter(attribute), args))
                if values.count(bulk.column.missing) == len(values):
                    continue
                typed = self._typed(values, bulk, of_category)
                has = typed != (self.names[""] if bulk.column.dtype == "str" else bulk.column.missing)
                part.add_args(bulk, (rows[has] + first).astype(np.int32), typed[has])

    def _add_call_args(self, part: GrowingTable, first: int, events: list[RawEvent]) -> None:
        """Append the arguments of calls of host-side communication, as JSON texts."""
        names = list(map(attrgetter("name"), events))
        rows = [i for i, name in enumerate(names) if type(name) is str and name.startswith(HOST_CALLS)]
        for bulk in call_columns():
            texts = [bytes(getattr(events[i].args, bulk.column.name)).decode("utf-8", "replace") for i in rows]
            has = [i for i, text in enumerate(texts) if text]
            typed = _ids(self.names, [texts[i] for i in has], len(has))
            part.add_args(bulk, np.array([rows[i] + first for i in has], np.int32), typed)

    def _typed(self, values: list[Any], bulk: BulkField, events: list[RawEvent]) -> Array:
        """Return argument values as an array; values of another type go through the event's model."""
        if bulk.column.dtype == "str":
            if set(map(type, values)) != {str}:
                values = [self._by_model(value, bulk, event) for value, event in zip(values, events, strict=True)]
            return _ids(self.names, values, len(values))
        code = TYPECODES[bulk.column.dtype]
        try:
            packed = array(code, values)
        except (TypeError, OverflowError):
            modelled = [self._by_model(v, bulk, event) for v, event in zip(values, events, strict=True)]
            packed = array(code, modelled if code == "d" else self._in_range(modelled, bulk))
        return np.frombuffer(packed, dtype=bulk.column.dtype)

    def _by_model(self, value: object, bulk: BulkField, event: RawEvent) -> Any:  # noqa: ANN401 - int or str, by column
        """Return an argument's value as the event's pydantic model reads it; `missing` if the model refuses it."""
        try:
            parsed = parse_event({"ph": "X", "cat": event.cat, "name": str(event.name), "args": {bulk.keys[0]: value}})
        except ValidationError:
            detail = f"argument {bulk.keys[0]!r} has values of another type, such as {shown(value)}; treated as missing"
            self.log.add("value_unreadable", self._unreadable.setdefault(bulk.keys[0], detail))
            return bulk.column.missing
        parsed_value = _column_value(parsed.args, bulk)
        return bulk.column.missing if parsed_value is None else parsed_value

    def _in_range(self, values: list[Any], bulk: BulkField) -> list[int]:
        """Return the values, with `missing` in place of those that do not fit into 64 bits."""
        limits = np.iinfo(bulk.column.dtype)
        fits = [isinstance(value, int) and limits.min <= value <= limits.max for value in values]
        detail = f"argument {bulk.keys[0]!r} has values beyond 64 bits; treated as missing"
        self.log.add("value_out_of_range", detail, fits.count(False))
        missing = int(bulk.column.missing)
        return [value if good else missing for value, good in zip(values, fits, strict=True)]

    def _add_flows(self, events: list[RawEvent]) -> None:
        forward = {cat for cat in {event.cat for event in events} if canonical_category(str(cat)) == "fwdbwd"}
        if not forward:
            return
        chosen = [event for event in events if event.cat in forward and event.id is not None]
        if not chosen:
            return
        padded, unpadded = self._times([event.ts for event in chosen], "ts")
        self._flow.append(
            (
                np.array([self._flow_id(event.id) for event in chosen], dtype=np.int64),
                np.array([event.ph == "s" for event in chosen], dtype=np.bool_),
                _ids(self.lanes, ((event.pid, event.tid) for event in chosen), len(chosen)),
                padded,
                unpadded,
            )
        )

    def _flow_id(self, value: object) -> int:
        """Return a flow's id as a number: numbers in range as they are, others from -1 downwards."""
        name = label(value)
        return name if isinstance(name, int) and 0 <= name < _ID_LIMIT else -1 - self._odd_flow_ids[name]

    def _add_thread_names(self, events: list[RawEvent]) -> None:
        for event in events:
            if event.name == "thread_name":
                self.thread_names[label(event.pid), label(event.tid)] = str(event.args.thread_name).strip()

    def _finish(self, part: GrowingTable) -> Table:
        duration = part.column("duration", unpadded=self.style.unpadded)
        negative = duration < 0
        self.log.add("negative_duration", "events with a negative duration; duration set to 0", int(negative.sum()))
        duration[negative] = 0
        missing = {bulk.column.name: bulk.column.missing for bulk in (*columns(), *call_columns())}
        args = {}
        for name, (rows, values) in part.args.items():
            absent = missing[name]
            args[name] = SparseColumn(as_array(rows), as_array(values), absent if isinstance(absent, int) else -1)
        return Table(
            index=part.column("index"), name=part.column("name"), category=part.column("category"),
            lane=part.column("lane"), start=part.column("start", unpadded=self.style.unpadded), duration=duration,
            args=args,
        )  # fmt: skip


def _ids(interner: Mapping[Any, int], keys: Iterable[Any], count: int) -> Array:
    return np.fromiter(map(interner.__getitem__, keys), dtype=np.int32, count=count)


def _column_value(args: Any, bulk: BulkField) -> Any:  # noqa: ANN401 - any of the models
    for name, info in type(args).model_fields.items():
        if bulk.column in info.metadata:
            return getattr(args, name)
    return None
