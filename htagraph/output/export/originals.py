"""The recorded events of one rank, as they are written into a trace of several ranks that Perfetto can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.core.issues import Issue, IssueLog
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.event_texts import EventText, as_event, event_texts_decoder, slice_text
from htagraph.output.export.path_slices import us_texts
from htagraph.output.export.trace_writer import RawEvent, us
from htagraph.output.export.tracks import Slices, nesting_tracks
from htagraph.trace.reading.collect.columns import Columns
from htagraph.trace.reading.collect.from_events import add_durations, add_events
from htagraph.trace.reading.collect.growing import Interner, label
from htagraph.trace.reading.decode import BlockDecoder
from htagraph.trace.reading.source import iter_bytes
from htagraph.trace.reading.split import split
from htagraph.trace.reading.times import FractionStyle, numbers_to_ns, padded, text_to_ns
from htagraph.trace.remote import TracePath

__all__ = ["Original", "PidOf", "survey"]

Array: TypeAlias = npt.NDArray[Any]
Lane: TypeAlias = tuple[int | str, int | str]

_HOUR_NS = 3_600_000_000_000
"""ns; chosen: other events of a file begin before its first activity by less. Doubled, times are larger numbers."""
_OWN_TIDS = 2_000_000_000
"""Threads without a number that Perfetto reads, and tracks that are added, count from here."""
_MAX_TID = 2**31
"""Threads with larger numbers are numbered anew; chosen: the range of Linux's. Doubled, it reaches the added tracks."""
_IDS_PER_RANK = 2**32
"""Ids of arrows that a rank may use; chosen: more than a file has events. Doubled, half as many ranks fit 64 bits."""
_ARROWS_AT_ONCE = 10_000
"""Ends of arrows that are written together; chosen: a few MB. Doubled, twice the memory, and no faster."""
_FLOWS = ("s", "t", "f")
_NAMING = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")


class PidOf(dict[tuple[int, "int | str"], int]):
    """(rank, pid in the file) → pid in what is written: no two ranks share one."""

    def __missing__(self, key: tuple[int, int | str]) -> int:
        taken = sum(rank == key[0] for rank, _ in self)
        self[key] = pid = (key[0] + 1) * 1000 + taken
        return pid


class _Slice(NamedTuple):
    """Where and when a recorded slice is drawn."""

    at: int
    """Its place in the file."""
    lane: int
    level: int
    ts: str
    """Start and duration, µs."""
    dur: str
    critical_ns: int


@dataclass
class Original:
    """What a first pass over a rank's file collects, so that its events can be written."""

    rank: int
    path: TracePath
    clock: Clock
    base_ns: int
    """The moment that the file's times are relative to."""
    unpadded: bool
    lanes: tuple[Lane, ...]
    index: Array
    """The position of each slice in the file, ascending."""
    lane: Array
    start: Array
    """Of each slice, ns on the common clock."""
    duration: Array
    level: Array
    """The track of its lane that each slice is drawn on, see `nesting_tracks`."""
    flows: list[tuple[str, str, int, int]]
    """Arrows to draw: category, name, slice at the tail, slice at the head."""
    ends_left_out: int = 0
    """How many ends of arrows in the file have no partner and are left out."""
    header: dict[str, Any] = field(default_factory=dict)
    """The root keys of the file."""
    first_ns: int | None = None
    """The earliest moment of any event, on the common clock."""
    issues: tuple[Issue, ...] = ()
    left_out: int = 0
    """Events that were not written: without a time, or of a clock that was hours off."""
    names: dict[Lane, str] = field(default_factory=dict)
    """The names of threads."""
    processes: dict[int | str, dict[str, str]] = field(default_factory=dict)
    """The names and labels that the file gives each pid."""

    @property
    def moved(self) -> int:
        """Slices that do not nest and went to tracks of their own."""
        return int(np.count_nonzero(self.level))

    def tid(self, lane: Lane, level: int = 0) -> int:
        """Return the number of a thread in what is written."""
        tid = lane[1]
        if level == 0 and isinstance(tid, int) and 0 < tid < _MAX_TID:
            return tid
        return _OWN_TIDS + self._extra[lane, level]

    def __post_init__(self) -> None:
        self._extra = Interner[tuple[Lane, int]]()
        self._places: dict[tuple[int, int], tuple[int, int, bytes]] = {}

    def events(self, base_ns: int, pid_of: PidOf, critical: Mapping[int, int]) -> Iterator[Sequence[RawEvent | bytes]]:
        """Yield the events to write, as dicts or JSON, block by block; arrows and the names of tracks come last.

        Args:
            base_ns: the moment on the common clock to which times are to be relative.
            pid_of: gives processes their numbers.
            critical: by place in the file, for how many ns an event is on the critical path.
        """
        log = IssueLog(str(self.path))
        late: list[RawEvent] = []
        # an instant is a slice to Perfetto: where an arrow begins or ends it must come behind the arrow
        held = {
            (self.lanes[self.lane[row]], us(int(self.start[row]) - base_ns))
            for _, _, *ends in self.flows
            for row in ends
        }
        for first, block in split(iter_bytes(self.path, log), event_texts_decoder(), {}, log):
            out: list[RawEvent | bytes] = []
            rows = slice(*np.searchsorted(self.index, [first, first + len(block)]).tolist())
            slices = self._slices(rows, base_ns, critical)
            following = next(slices, None)
            for at, event in enumerate(block, first):
                if following is not None and following.at == at:
                    out.append(self._slice(event, following, pid_of))
                    following = next(slices, None)
                elif isinstance(event, dict) or event.ph not in _FLOWS:
                    self._keep(event if isinstance(event, dict) else as_event(event), base_ns, pid_of, held, out, late)
            yield out
        arrows = chain.from_iterable(self._arrows(base_ns, pid_of))
        while some := list(islice(arrows, _ARROWS_AT_ONCE)):
            yield some
        yield late
        yield list(self._names(pid_of))

    def _keep(
        self, event: RawEvent, base_ns: int, pid_of: PidOf, held: Set[Any], out: list[Any], late: list[Any]
    ) -> None:
        """Put an event that is no slice into one of two lists, if it is written."""
        where = label(event.get("pid", "")), label(event.get("tid", ""))
        if (kept := self._rewritten(event, where, base_ns, pid_of)) is not None:
            (late if (where, kept.get("ts")) in held else out).append(kept)

    def _slices(self, rows: slice, base_ns: int, critical: Mapping[int, int]) -> Iterator[_Slice]:
        """Yield where and when some slices are drawn."""
        columns = (
            self.index[rows].tolist(), self.lane[rows].tolist(), self.level[rows].tolist(),
            us_texts(self.start[rows] - base_ns), us_texts(self.duration[rows]),
        )  # fmt: skip
        for at, lane, level, start, duration in zip(*columns, strict=True):
            yield _Slice(at, lane, level, start, duration, critical.get(at, 0))

    def _slice(self, event: EventText | RawEvent, drawn: _Slice, pid_of: PidOf) -> RawEvent | bytes:
        """Return a slice where and when it is drawn: as text if nothing else of it changes."""
        key = drawn.lane, drawn.level
        if key not in self._places:
            lane = self.lanes[drawn.lane]
            pid, tid = pid_of[self.rank, lane[0]], self.tid(lane, drawn.level)
            self._places[key] = pid, tid, f'"pid":{pid},"tid":{tid}'.encode()
        pid, tid, where = self._places[key]
        if isinstance(event, EventText):
            critical_us = str(us(drawn.critical_ns)) if drawn.critical_ns else ""
            text = slice_text(event, where, drawn.ts, drawn.dur, critical_us)
            if text is not None:
                return text
            event = as_event(event)
        event |= {"pid": pid, "tid": tid, "ts": Decimal(drawn.ts), "dur": Decimal(drawn.dur)}
        if not isinstance(event.get("name"), str):
            event["name"] = str(event.get("name", ""))
        if drawn.critical_ns:
            args = event.get("args")
            event["args"] = {**(args if isinstance(args, dict) else {}), "critical_us": us(drawn.critical_ns)}
        return event

    def _rewritten(self, event: RawEvent, lane: Lane, base_ns: int, pid_of: PidOf) -> RawEvent | None:
        """Return an event that is no slice; None if it is written elsewhere, or not at all."""
        phase = event.get("ph")
        if phase == "M":
            self._learn(event, lane)
            return None if event.get("name") in _NAMING else self._placed(event, lane, pid_of)
        if phase in _FLOWS:
            return None
        moment = None if phase == "X" else self._common(event.get("ts"))
        if moment is None or moment < base_ns:
            self.left_out += 1
            return None
        event["ts"] = us(moment - base_ns)
        return self._placed(event, lane, pid_of)

    def _placed(self, event: RawEvent, lane: Lane, pid_of: PidOf) -> RawEvent:
        event["pid"], event["tid"] = pid_of[self.rank, lane[0]], self.tid(lane)
        return event

    def _learn(self, event: RawEvent, lane: Lane) -> None:
        args = event.get("args")
        if isinstance(args, dict):
            name, text = event.get("name"), next(iter(args.values()), "")
            if name == "thread_name":
                self.names[lane] = str(text).strip()
            elif name in ("process_name", "process_labels"):
                self.processes.setdefault(lane[0], {})[name] = str(text)

    def _common(self, raw: object) -> int | None:
        """Return a time in the file as ns on the common clock; None where it is no time."""
        try:
            text = str(raw)
            number = round(Decimal(padded(text) if self.unpadded else text) * 1000) + self.base_ns
            return int(self.clock.common(np.array([number]))[0])
        except (InvalidOperation, ValueError, OverflowError):
            return None

    def _arrows(self, base_ns: int, pid_of: PidOf) -> Iterator[list[RawEvent]]:
        for number, (category, name, tail, head) in enumerate(self.flows):
            common = {"cat": category, "name": name, "id": self.rank * _IDS_PER_RANK + number + 1}
            yield [
                {"ph": phase, **common, **self._where(row, base_ns, pid_of), **binding}
                for phase, row, binding in (("s", tail, {}), ("f", head, {"bp": "e"}))
            ]

    def _where(self, row: int, base_ns: int, pid_of: PidOf) -> RawEvent:
        lane = self.lanes[self.lane[row]]
        tid = self.tid(lane, int(self.level[row]))
        return {"pid": pid_of[self.rank, lane[0]], "tid": tid, "ts": us(int(self.start[row]) - base_ns)}

    def _names(self, pid_of: PidOf) -> Iterator[RawEvent]:
        """Yield the names of processes, threads and added tracks."""
        used = np.unique(np.stack((self.lane, self.level)), axis=1).T.tolist() if len(self.lane) else []
        for pid in dict.fromkeys(self.lanes[number][0] for number, _ in used):
            labels = self.processes.get(pid, {})
            name, what = labels.get("process_name", ""), labels.get("process_labels", "")
            text = " ".join(
                part for part in (f"rank {self.rank}", what, f"({name} {pid})" if name else f"({pid})") if part
            )
            yield {"ph": "M", "name": "process_name", "pid": pid_of[self.rank, pid], "tid": 0, "args": {"name": text}}
        for number, level in used:
            lane = self.lanes[number]
            name = self.names.get(lane) or (f"thread {lane[1]}" if isinstance(lane[1], int) else str(lane[1]))
            args = {"name": f"{name} ({level + 1})" if level else name}
            where = {"pid": pid_of[self.rank, lane[0]], "tid": self.tid(lane, level)}
            yield {"ph": "M", "name": "thread_name", **where, "args": args}


def survey(graph: DependencyGraph, rank: int) -> Original:
    """Return what a first pass over a rank's file collects, so that its events can be written.

    Raises:
        TraceError: the file is gone or was changed since the graph was made.
    """
    trace = graph.traces[rank]
    path, log = trace.unchanged_path(), IssueLog(str(trace.path))
    columns, ends, decode, header = Columns(log), _Ends(), BlockDecoder(), dict[str, Any]()
    for position, events in split(iter_bytes(path, log), decode, header, log):
        add_events(columns, position, events)
        ends.add(events, exact=decode.exact)
        del events  # see split: before the next block
    add_durations(columns)
    table, unpadded = columns.table(), columns.style.unpadded
    clock = next((clock for clock in graph.clocks if clock.rank == rank), Clock(rank))
    base = trace.header.base_time_nanoseconds or 0
    least = _least(graph, rank)
    own = table.start + base
    kept = np.flatnonzero(own >= least)
    start = clock.common(own[kept])
    duration = clock.common(own[kept] + table.duration[kept]) - start
    level = nesting_tracks(table.lane[kept], start, duration)
    others = ends.others(unpadded=unpadded) + base
    others = clock.common(others[others >= least])
    moments = [int(each.min()) for each in (start, others) if len(each)]
    original = Original(
        rank=rank, path=path, clock=clock, base_ns=base, unpadded=unpadded, lanes=(), index=table.index[kept],
        lane=table.lane[kept], start=start, duration=duration, level=level, flows=[], header=header,
        first_ns=min(moments, default=None), issues=log.issues(rank),
    )  # fmt: skip
    when = clock.common(ends.moments(unpadded=unpadded) + base)
    where = np.array([columns.lanes[row[4:]] for row in ends.rows], np.int64)
    met = Slices(original.lane, start, duration, level).met(where, when)
    original.flows, original.ends_left_out = _paired(ends.rows, when, met, start)
    original.lanes = tuple(columns.lanes.lanes)
    return original


def _least(graph: DependencyGraph, rank: int) -> int:
    """Return the moment on the rank's clock, ns, before which an event's time is an error of the profiler."""
    of_rank = graph.activities.of_rank(rank)
    start = graph.activities.start[of_rank]
    return int(start.min()) - _HOUR_NS if len(start) else -(2**62)


class _Ends:
    """Collects the ends of arrows, and the moments of what is neither slice nor arrow."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, Any, Any, Any]] = []  # phase, category, name, id, pid, tid
        self._moments: list[tuple[Array, Array]] = []
        self._others: list[tuple[Array, Array]] = []

    def add(self, events: list[Any], *, exact: bool) -> None:
        """Take a block into account."""
        flows = [event for event in events if event.ph in _FLOWS and event.ts not in (None, b"")]
        others = [event.ts for event in events if event.ph not in ("X", "M", *_FLOWS) and event.ts not in (None, b"")]
        self.rows += [(e.ph, str(e.cat or ""), str(e.name), str(e.id), e.pid, e.tid) for e in flows]
        self._moments.append(_times([event.ts for event in flows], exact=exact))
        self._others.append(_times(others, exact=exact))

    def moments(self, *, unpadded: bool) -> Array:
        """Return the time of each row, ns since the file's base."""
        return _joined(self._moments, unpadded=unpadded)

    def others(self, *, unpadded: bool) -> Array:
        """Return the times of all other events, ns since the file's base."""
        return _joined(self._others, unpadded=unpadded)


def _times(values: list[Any], *, exact: bool) -> tuple[Array, Array]:
    if exact or any(isinstance(value, str | msgspec.Raw) for value in values):
        texts = [bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value) for value in values]
        return text_to_ns(texts, FractionStyle())
    times = numbers_to_ns(values) if values else np.zeros(0, np.int64)
    return times, times


def _joined(parts: list[tuple[Array, Array]], *, unpadded: bool) -> Array:
    return np.concatenate([part[unpadded] for part in parts]) if parts else np.zeros(0, np.int64)


def _paired(
    rows: list[tuple[str, str, str, Any, Any, Any]], moments: Array, met: Array, start: Array
) -> tuple[list[tuple[str, str, int, int]], int]:
    """Return the arrows that can be drawn, from each ``s`` to every ``f`` of its id before the next, and the ends left.

    An arrow without a slice at one of its ends, within one slice, or to one that began earlier, cannot.
    """
    tails: dict[tuple[str, str, str], int] = {}  # rows of the last tail of each id
    flows, used = [], set()
    for at in np.lexsort((np.array([row[0] != "s" for row in rows], np.int8), moments)).tolist():
        phase, category, name, number = rows[at][:4]
        key, slice_ = (category, name, number), int(met[at])
        tail = int(met[tails[key]]) if key in tails else -1
        if phase != "s" and tail >= 0 and slice_ >= 0 and tail != slice_ and start[tail] <= start[slice_]:
            flows.append((category, name, tail, slice_))
            used |= {at, tails[key]}
        if phase != "f":
            tails[key] = at
    return flows, len(rows) - len(used)
