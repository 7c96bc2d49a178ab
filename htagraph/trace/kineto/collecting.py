"""The columns of one file while it is read: what its events are added to, block by block, and what comes of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.issues import IssueLog
from htagraph.core.naming import FRAME
from htagraph.trace.columns import (
    Flows,
    GrowingTable,
    Interner,
    Lane,
    LaneInterner,
    SparseColumn,
    Table,
    as_array,
    label,
)
from htagraph.trace.kept import Frames, Sieve
from htagraph.trace.kineto.events import call_columns, canonical_category, columns
from htagraph.trace.kineto.times import FractionStyle

__all__ = ["Columns"]

RawEvent = Any  # a generated struct, see `decode`
_LEGACY_CATEGORY = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
_ID_LIMIT = 2**63  # ids of flows are int64: what is not below counts as text


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
        self.window_end_seen = False
        self.style = FractionStyle()
        self.complete, self.instant = GrowingTable(), GrowingTable()
        self.flow_parts: list[tuple[Array, ...]] = []
        """Id, is a start, lane, time and time with unpadded fractions of flows."""
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

    def see(self, category: Array, start: Array, duration: Array) -> None:
        """Note the times of complete events, of which some may become no rows."""
        if self._sieve is not None:
            self._sieve.see(self, category, start, duration)

    def thin(self, *, last: bool = False) -> None:
        """Drop the complete events that nothing kept needs; `last` once all are known."""
        if self._sieve is not None:
            self._sieve.thin(self, last=last)

    def drop(self, rows: Array) -> None:
        """Drop complete events, but report what is wrong with them."""
        self.note_negative(as_array(self.complete.columns["duration"])[rows])
        self.complete.keep(~rows)

    def note_negative(self, duration: Array) -> None:
        """Report negative durations."""
        count = int(np.count_nonzero(duration < 0))
        self.log.add("negative_duration", "events with a negative duration; duration set to 0", count)

    def note_frames(self, is_frame: Array, left_out: Array) -> None:
        """Count calls of Python functions, and take back all of them if they are too many."""
        count = int(np.count_nonzero(is_frame & left_out))
        if self.frames.count(int(np.count_nonzero(is_frame)) - count, count):
            self.drop(as_array(self.complete.columns["category"]) == self.categories[FRAME])

    def note_absent(self, count: int, what: str) -> None:
        """Report events without the time `what`, if they should have one."""
        if what:
            self.log.add(f"{what}_missing", f"complete events (ph X) without {what!r}; read as 0", count)

    def table(self) -> Table:
        """Return the complete events."""
        return self._finish(self.complete)

    def instants(self) -> Table:
        """Return the instant events that have a category."""
        return self._finish(self.instant)

    def flows(self) -> Flows:
        """Return the forward-to-backward arrows."""
        kinds = (np.int64, np.bool_, np.int32, np.int64, np.int64)
        joined = [
            np.concatenate([part[i] for part in self.flow_parts]) if self.flow_parts else np.zeros(0, kind)
            for i, kind in enumerate(kinds)
        ]
        time = joined[4] if self.style.unpadded else joined[3]
        return Flows(id=joined[0], is_start=joined[1], lane=joined[2], time=time)

    def _finish(self, part: GrowingTable) -> Table:
        duration = part.column("duration", unpadded=self.style.unpadded)
        self.note_negative(duration)
        duration[duration < 0] = 0
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
