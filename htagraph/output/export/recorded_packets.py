"""The recorded events of one rank in Perfetto's native format, block by block as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from htagraph.core.arrays import Array, inverse_of, marked, run_starts
from htagraph.output.export.originals import Lane, Original
from htagraph.output.export.packet_writer import PacketWriter
from htagraph.output.export.recorded_events import IDS_PER_RANK, PidOf, RecordedEvents
from htagraph.output.export.trace_writer import RawEvent, metadata
from htagraph.output.scene import COUNT, Slices, Values

__all__ = ["RecordedPackets", "held_back"]

_ROUNDS = 8
"""Arrows in a row without any time between them that are drawn in their direction; chosen: recorded chains have one or
two. Doubled, so are longer chains."""


class RecordedPackets(RecordedEvents):
    """Writes the events of a file."""

    def __init__(self, original: Original, base_ns: int, pid_of: PidOf, *others: Any) -> None:  # noqa: ANN401 - as above
        super().__init__(original, base_ns, pid_of, *others)
        self._pid = pid_of[original.rank, ""]
        arrows = original.arrows
        ends, count = np.concatenate((arrows.tail, arrows.head)), len(original.start)
        ids = np.tile(original.rank * IDS_PER_RANK + 1 + np.arange(len(arrows)), 2)
        first = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=count))))
        self._flows = ids[np.argsort(ends, kind="stable")], first.astype(np.int64)
        self._back = held_back(original.track, original.start, original.duration, (arrows.tail, arrows.head))
        self._is_back = marked(self._back, count)
        self._kept: dict[int, Array] = {}

    def write(self, writer: PacketWriter) -> None:
        """Write all events."""
        original = self._original
        writer.add_ends(self._where(), self._place, original.start - self._base_ns, original.duration)
        for slices, row, others in self._blocks():
            self._begin(writer, slices, row)
            for event in others:
                writer.add(self._values(event))
        for row_ in self._back.tolist():
            writer.write(self._kept[row_])
        writer.add(self._track_names())

    def _where(self) -> list[tuple[int, int]]:
        """Return the tracks of the rank's one process."""
        return [(self._pid, number) for number in range(len(self._places))]

    def _begin(self, writer: PacketWriter, slices: Slices, row: Array) -> None:
        """Write where slices and instants begin; keep the slices that must come behind all others."""
        ids, first = self._flows
        of_slices = row[row >= 0]
        count = np.zeros(len(row) + 1, np.int64)
        count[1:][row >= 0] = first[of_slices + 1] - first[of_slices]
        begin = int(first[of_slices[0]]) if len(of_slices) else 0
        packets, starts = writer.begins(slices, (ids, begin + np.cumsum(count)))
        done = 0
        for at in np.flatnonzero((row >= 0) & self._is_back[row]).tolist() if len(of_slices) else ():
            writer.write(packets[starts[done] : starts[at]])
            self._kept[int(row[at])] = packets[starts[at] : starts[at + 1]].copy()
            done = at + 1
        writer.write(packets[starts[done] :])

    def _values(self, event: RawEvent) -> Iterator[Values]:
        """Yield what an event that is neither slice nor instant says of counters; count it if it has no form here."""
        args = event.get("args")
        if event.get("ph") != "C":
            self.not_drawn += event.get("ph") != "M"
            return
        _, moment = self._moved(event)
        for series, value in args.items() if moment is not None and isinstance(args, dict) else ():
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
            device = self._lanes[lane].device if lane in self._lanes else -1
            before = f"device {device} " if several and device >= 0 else ""
            name = before + self._track_name(lane, level, "without a thread")
            yield metadata("thread_name", self._pid, number, name=name)
            yield metadata("thread_sort_index", self._pid, number, sort_index=position)

    def _sort_key(self, lane: Lane, level: int) -> tuple[int, int, int, str, int]:
        """Return where a track stands: threads, the main one first, before streams before what is neither."""
        known = self._lanes.get(lane)
        if known is not None and known.device >= 0:
            return 1, known.device, known.stream, "", level
        pid, tid = lane
        is_thread = isinstance(pid, int) and isinstance(tid, int)
        return 0 if is_thread else 2, int(pid != tid), tid if isinstance(tid, int) else 0, str(lane), level


def held_back(track: Array, start: Array, duration: Array, arrows: tuple[Array, Array]) -> Array:
    """Return the slices that must come behind all others of their file, in their order; the rest can stay in its order.

    Of slices that begin together on one track, the longer ones must come first, as the others are inside them. An arrow
    goes from what comes first to what comes last, so its tail must come before its head.

    Example:
        >>> none = np.zeros(0, np.int64)
        >>> held_back(np.array([1, 1, 2]), np.array([5, 5, 5]), np.array([1, 9, 3]), (none, none)).tolist()
        [0]
    """
    order = np.lexsort((np.arange(len(track)), -duration, start, track))
    place = inverse_of(order, len(order))
    group = np.cumsum(marked(run_starts(track[order], start[order]), len(order))) - 1
    at_once = start[arrows[0]] == start[arrows[1]]
    tail, head = place[arrows[0][at_once]], place[arrows[1][at_once]]
    late = _late(order, group, tail, head)
    level = np.zeros(len(order), np.int64)
    both = late[tail] & late[head]
    for _ in range(_ROUNDS):
        np.maximum.at(level, head[both], level[tail[both]] + 1)
        level = _running(level, group)
    rows = np.flatnonzero(late)
    return order[rows[np.lexsort((rows, level[rows], start[order[rows]]))]]


def _late(order: Array, group: Array, tail: Array, head: Array) -> Array:
    """Return which slices, in `order`, cannot stay where they are in the file."""
    late = order < _running(order, group)
    for _ in range(_ROUNDS):
        late = _running(late.astype(np.int64), group) > 0
        late[head] |= late[tail] | (order[tail] > order[head])
    return _running(late.astype(np.int64), group) > 0


def _running(values: Array, group: Array) -> Array:
    """Return the largest value so far of each group; values are less than their number, or as many."""
    base = group * (len(values) + _ROUNDS + 1)
    return np.asarray(np.maximum.accumulate(values + base) - base) if len(values) else values
