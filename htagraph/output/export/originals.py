"""The recorded slices and arrows of one rank that Perfetto can draw: what a first pass over its file collects.

Perfetto's rules, as observed of its trace processor (v52):

- Slices of a track are taken in the order of (start, longer first, place in the file). One that begins inside another
  and ends behind it is dropped; it needs a track of its own.
- The end of an arrow meets the slice of its track that began last, even if that is over. At one moment, events count in
  the order of the file, slices first if they stand first.
- An arrow is turned around if the slice at its head began before the slice at its tail.
- A second ``s`` of an id before its ``f``, and an end where no slice ever began, are import errors; an ``f`` without an
  ``s`` is ignored.
- A number with more than 18 decimals is misread (0.00043402777777777775 as 0.0056): counters need fewer.
- Times below 0 are dropped without a word, and times beyond 2^53 ns lose nanoseconds: times must be relative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, Ints, joined
from htagraph.core.compiled import njit
from htagraph.core.errors import Issue, IssueLog, TraceError
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.scene import nesting_tracks, tracks_of
from htagraph.trace import kineto
from htagraph.trace.columns import Interner, Trace
from htagraph.trace.kineto.collecting import Columns, add_durations, add_events
from htagraph.trace.kineto.decode import BlockDecoder, split
from htagraph.trace.kineto.from_blocks import BlockColumns
from htagraph.trace.kineto.scan import events as scan
from htagraph.trace.kineto.scan.scanner import Block, span_text
from htagraph.trace.kineto.source import ahead, iter_bytes
from htagraph.trace.kineto.times import FractionStyle, decimal_us, numbers_to_ns, text_to_ns
from htagraph.trace.readers import reader_of
from htagraph.trace.remote import TracePath

__all__ = ["FLOWS", "ArrowEnds", "Arrows", "Lane", "MetSlices", "Original", "are_copied", "start_ns", "survey"]

Lane: TypeAlias = tuple[int | str, int | str]

_HOUR_NS = 3_600_000_000_000
"""ns; chosen: other events of a file begin before its first activity by less. Doubled, times are larger numbers."""
_OWN_TIDS = 2_000_000_000
"""Threads without a number that Perfetto reads, and tracks that are added, count from here."""
_MAX_TID = 2**31
"""Threads with larger numbers are numbered anew; chosen: the range of Linux's. Doubled, it reaches the added tracks."""
FLOWS = ("s", "t", "f")
"""Phases of the ends of arrows."""
_NOT_OTHERS = ("X", "M", *FLOWS)
_LOOK_BACK = 10_000
"""Slices; chosen: an arrow into one that began before so many others is not worth the search. Doubled, searching for an
arrow that meets nothing takes twice as long."""


@dataclass(frozen=True, eq=False)
class Original:
    """The slices and arrows of a rank's file, and how its times are read."""

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
    tracks: list[tuple[int, int]]
    """Lane and level of each track that has slices, ascending."""
    track: Array
    """The track of each slice."""
    arrows: Arrows
    header: dict[str, Any]
    """The root keys of the file."""
    first_ns: int | None
    """The earliest moment of any event, on the common clock."""
    issues: tuple[Issue, ...]
    _tids: Interner[tuple[Lane, int]] = field(default_factory=Interner)

    @property
    def moved(self) -> int:
        """Slices that do not nest and went to tracks of their own."""
        return int(np.count_nonzero(self.level))

    def tid(self, lane: Lane, level: int = 0) -> int:
        """Return the number of a thread in what is written."""
        tid = lane[1]
        if level == 0 and isinstance(tid, int) and 0 < tid < _MAX_TID:
            return tid
        return _OWN_TIDS + self._tids[lane, level]

    def common(self, moments: Array) -> Ints:
        """Return moments since the file's base, ns, on the common clock."""
        return self.clock.common(moments + self.base_ns)


def are_copied(trace: Trace) -> bool:
    """Return whether recorded events of a trace can be copied: those of Kineto's files."""
    return reader_of(trace) is kineto


def survey(graph: DependencyGraph, rank: int) -> Original:
    """Return what a first pass over a rank's file collects.

    Raises:
        TraceError: the file has another format than Kineto's, of which no recorded events are copied.
    """
    trace = graph.traces[rank]
    if not are_copied(trace):
        msg = f"{trace.path}: recorded events are copied from files of PyTorch's profiler only, not from {trace.format}"
        raise TraceError(msg)
    path, log = trace.unchanged_path(), IssueLog(str(trace.path))
    columns, decode, header = Columns(log), BlockDecoder(), dict[str, Any]()
    blocks, ends = BlockColumns(columns), ArrowEnds(columns)
    for position, events in split(ahead(iter_bytes(path, log)), decode, header, log, decode.scan, decode.ahead):
        if isinstance(events, list):
            add_events(columns, position, events)
            ends.add(events, exact=decode.exact)
        else:
            blocks.add(position, events)
            ends.add_block(events, blocks)
        del events  # see split: before the next block
    add_durations(columns)
    table, unpadded = columns.table(), columns.style.unpadded
    clock = next((clock for clock in graph.clocks if clock.rank == rank), Clock(rank))
    base = trace.facts.origin_ns
    starts = graph.activities.start[graph.activities.of_rank(rank)]
    # before that moment on the rank's clock, an event's time is an error of the profiler
    least = int(starts.min()) - _HOUR_NS if len(starts) else -(2**62)
    own = table.start + base
    kept = np.flatnonzero(own >= least)
    kept = kept[np.argsort(table.index[kept], kind="stable")]  # durations of begins and ends come last in the table
    start = clock.common(own[kept])
    lane, duration = table.lane[kept], clock.common(own[kept] + table.duration[kept]) - start
    level = nesting_tracks(lane, start, duration)
    tracks, track = tracks_of(lane, level)
    others = ends.others(unpadded=unpadded) + base
    others = clock.common(others[others >= least])
    moments = [int(each.min()) for each in (start, others) if len(each)]
    arrows = ends.arrows(
        start, MetSlices(lane, start, duration, level).met, lambda since: clock.common(since + base), unpadded=unpadded
    )
    return Original(
        rank=rank, path=path, clock=clock, base_ns=base, unpadded=unpadded, lanes=tuple(columns.lanes.lanes),
        index=table.index[kept], lane=lane, start=start, duration=duration, level=level, tracks=tracks, track=track,
        arrows=arrows, header=header, first_ns=min(moments, default=None), issues=log.issues(rank),
    )  # fmt: skip


@dataclass(frozen=True)
class Arrows:
    """Arrows that can be drawn, by the time of their heads."""

    labels: list[tuple[str, str]]
    """Categories and names."""
    label: Ints
    """Of each arrow, its position in `labels`."""
    tail: Ints
    """The slice at which it begins."""
    head: Ints
    ends_left_out: int = 0
    """How many ends of arrows in the file have no partner and are left out."""

    def __len__(self) -> int:
        return len(self.label)


def start_ns(block: Block, which: Array, *, unpadded: bool) -> Ints:
    """Return when events of a block start, ns since the file's base."""
    start = block.rows[which, scan.START]
    return start - block.rows[which, scan.START_SLIP] if unpadded and block.exact else start


class ArrowEnds:
    """Collects the ends of arrows, and the moments of what is neither slice nor arrow."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._labels = Interner[tuple[str, str]]()
        self._ends: list[tuple[Array, ...]] = []  # phase, label, id, lane
        self._moments: list[tuple[Array, Array]] = []  # padded, unpadded
        self._others: list[tuple[Array, Array]] = []

    def add(self, events: list[Any], *, exact: bool) -> None:
        """Take a list of decoded events into account."""
        flows = [event for event in events if event.ph in FLOWS and _is_time(event.ts)]
        others = [event.ts for event in events if event.ph not in _NOT_OTHERS and _is_time(event.ts)]
        columns = self._columns
        rows = [
            (ord(e.ph), self._labels[str(e.cat or ""), str(e.name)], columns.flow_id(e.id), columns.lanes[e.pid, e.tid])
            for e in flows
        ]
        self._ends.append(tuple(np.array(rows, np.int64).reshape(-1, 4).T))
        self._moments.append(_times([event.ts for event in flows], exact=exact))
        self._others.append(_times(others, exact=exact))

    def add_block(self, block: Block, columns: BlockColumns) -> None:
        """Take a scanned block into account; `columns` has it already."""
        phase, has_time = block.rows[:, scan.PHASE], block.rows[:, scan.FLAGS] & scan.START_ABSENT == 0
        is_flow = np.isin(phase, [ord(each) for each in FLOWS])
        others = ~is_flow & ~np.isin(phase, [ord("X"), ord("M")]) & has_time
        where = np.flatnonzero(is_flow & has_time)
        which, pairs = pd.factorize(block.categories[where].astype(np.int64) << 32 | block.names[where])
        labels = [
            self._labels[str(block.values[pair >> 32] or ""), str(block.values[pair & (2**32 - 1)])]
            for pair in pairs.tolist()
        ]
        label, lane = np.array(labels, np.int64)[which], columns.lane_numbers(block, where)
        self._ends.append((phase[where], label, self._ids(block, where), lane))
        for into, rows in ((self._moments, where), (self._others, np.flatnonzero(others))):
            into.append((start_ns(block, rows, unpadded=False), start_ns(block, rows, unpadded=True)))

    def _ids(self, block: Block, where: Array) -> Array:
        ids, flags = block.rows[where, scan.ID], block.rows[where, scan.FLAGS]
        for at in np.flatnonzero(flags & scan.ID_IS_SPAN).tolist():
            ids[at] = self._columns.flow_id(msgspec.json.decode(span_text(block.text, int(ids[at]))))
        ids[flags & (scan.ID_IS_NUMBER | scan.ID_IS_SPAN) == 0] = self._columns.flow_id(None)
        return ids

    def others(self, *, unpadded: bool) -> Array:
        """Return the times of all other events, ns since the file's base."""
        return joined(((part[unpadded],) for part in self._others), 1)[0]

    def arrows(
        self, start: Array, met: Callable[[Array, Array], Array], common: Callable[[Array], Array], *, unpadded: bool
    ) -> Arrows:
        """Return the arrows that can be drawn, from each ``s`` to every ``f`` of its id before the next.

        An arrow without a slice at one of its ends, within one slice, or to one that began earlier, cannot.
        """
        phase, label, number, lane = joined(self._ends, 4)
        moment = common(joined(((part[unpadded],) for part in self._moments), 1)[0])
        order = np.lexsort((phase != ord("s"), moment))  # in time, tails first
        slice_ = met(lane, moment)[order]
        phase, label, number = phase[order], label[order], number[order]
        tails = pd.Series(np.arange(len(phase), dtype=np.float64)).where(phase != ord("f"))
        before = tails.groupby([label, number]).shift()  # the last tail of its id before each end, -1 for none
        tail = np.asarray(before.groupby([label, number]).ffill().fillna(-1), np.int64)
        heads = np.flatnonzero((phase != ord("s")) & (tail >= 0) & (slice_ >= 0))
        tail = tail[heads]
        fine = (slice_[tail] >= 0) & (slice_[tail] != slice_[heads])
        fine[fine] = start[slice_[tail[fine]]] <= start[slice_[heads[fine]]]
        heads, tail = heads[fine], tail[fine]
        used = len(np.union1d(heads, tail))
        return Arrows(list(self._labels), label[heads], slice_[tail], slice_[heads], len(phase) - used)


def _is_time(value: Any) -> bool:  # noqa: ANN401 - of a decoded event
    """Return whether a value is a time: an arrow or an instant without one costs the others nothing."""
    text = bytes(value).decode("utf-8", "replace") if isinstance(value, msgspec.Raw) else str(value)
    return decimal_us(text.strip('"')) is not None


def _times(values: list[Any], *, exact: bool) -> tuple[Array, Array]:
    if exact or any(isinstance(value, str | msgspec.Raw) for value in values):
        texts = [bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value) for value in values]
        return text_to_ns(texts, FractionStyle())
    times = numbers_to_ns(values) if values else np.zeros(0, np.int64)
    return times, times


class MetSlices:
    """The slices of a file by lane and time: finds the one that an arrow meets."""

    def __init__(self, lane: Array, start: Array, duration: Array, level: Array) -> None:
        self._order = np.lexsort((-duration, start, lane))
        self._lane, self._level = lane[self._order], level[self._order]
        self._start = start[self._order].astype(np.int64)
        self._end = self._start + duration[self._order]

    def met(self, lane: Array, moment: Array) -> Ints:
        """Return the slice that each end of an arrow belongs to, -1 for none.

        The slice that begins at the moment, the innermost of several; else the innermost around it, as Perfetto draws
        it: of slices that began together the one that began last.
        """
        meeting = np.full(len(lane), -1, np.int64)
        for each in np.unique(lane).tolist():
            bounds = tuple(np.searchsorted(self._lane, [each, each + 1]).tolist())
            rows = np.flatnonzero(lane == each)
            found = np.empty(len(rows), np.int64)
            _meet(moment[rows].astype(np.int64), bounds, self._start, self._end, self._level, found)
            meeting[rows] = np.where(found < 0, -1, self._order[found]) if len(self._order) else -1
        return meeting


@njit(cache=True, nogil=True)
def _meet(moments: Array, bounds: tuple[int, int], start: Array, end: Array, level: Array, found: Array) -> None:
    """Fill `found` with the slice, of those between two bounds, that each moment meets; -1 for none."""
    first, last = bounds
    for row in range(len(moments)):
        at = first + np.searchsorted(start[first:last], moments[row], side="right") - 1
        least = max(first, at - _LOOK_BACK)
        while at >= least and end[at] < moments[row]:
            at -= 1
        held = at if at >= least else -1
        found[row] = held
        other = held + 1
        while held >= 0 and other < last and start[other] == start[held]:
            if level[other] == level[held]:
                found[row] = other
            other += 1
