"""Critical paths and counters as tracks over the recorded events, for Perfetto's UI: one file over all ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, inverse_of, marked, run_starts
from htagraph.core.errors import Issue
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export import trace_writer
from htagraph.output.export.originals import Lane, Original, are_copied, survey
from htagraph.output.export.packet_writer import PacketWriter
from htagraph.output.export.path_tracks import path_events, predicted_stretches
from htagraph.output.export.recorded_events import IDS_PER_RANK, PREDICTED, PidOf, PidOfRank, RecordedEvents
from htagraph.output.export.trace_writer import RawEvent, TraceWriter, metadata, row_texts
from htagraph.output.scene import BYTES, COUNT, GB_S, NO_NUMBER, Slices, Values, nesting_tracks, scene_of, tracks_of
from htagraph.output.whole_files import PERFETTO, check_ending, is_native
from htagraph.queries.counter_series import bandwidth_changes, queue_changes
from htagraph.queries.paths import CriticalPath, path_in_window
from htagraph.queries.recorded_events import memory_events
from htagraph.queries.samples import sampled
from htagraph.trace.columns import label

if TYPE_CHECKING:
    from htagraph.whatif.outcome import Outcome

__all__ = [
    "Event", "MergedJob", "Written", "bandwidths", "counters_to_perfetto", "memory", "queues", "recorded_samples",
    "to_perfetto",
]  # fmt: skip

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
        process = event.get("pid")
        if event.get("ph") != "C":
            self.not_drawn += event.get("ph") != "M"
            return
        _, moment = self._moved(event)
        for series, value in args.items() if moment is not None and isinstance(args, dict) else ():
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                self.not_drawn += 1
                continue
            name = str(event.get("name", ""))
            # all processes of a rank are one track here: a process with a name tells its counters from those of others
            named = isinstance(label(process), str)
            series_name = " ".join(filter(None, (series, str(process) if named else "")))
            yield Values(self._pid, name, series_name, COUNT, np.array([moment]), np.array([number]))

    def _track_names(self) -> Iterator[RawEvent]:
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


Event: TypeAlias = RawEvent | Slices | Values

_DECIMALS = 6
"""Of bandwidths; chosen: kB/s. Doubled, files grow by digits that no clock can tell; Perfetto misreads more than 18."""


def to_perfetto(what: CriticalPath | Outcome, target: str | Path, *, counters: bool = False) -> Written:
    """Write the recorded events of every rank with the critical path over them, for Perfetto's UI.

    The process ``critical path`` has four sorts of tracks: a track that says what the time was spent on, by rank and
    category and below by operator or kernel; a track for each thread and stream that the path runs on, with arrows
    between these tracks; three tracks with near-critical paths (`CriticalPath.near`); and a track for each rank that
    waited until the path came from another rank, with arrows to the activities that the rank waited for longest. All
    ranks are on the common clock. Recorded events on the path have the argument ``critical_us``. Nothing is dropped
    without a word, see `Written`.

    For the path of a prediction (`Outcome.critical_path`), the activities are written at their predicted times, in
    place of the recorded events. For an `Outcome`, both are written: the recorded events with their critical path, and
    each rank's activities at their predicted times as a process ``rank N, predicted``, with what the predicted time is
    spent on.

    In a ``.pftrace`` file the path is on top, with where its time goes on its first line, and ranks, their threads and
    their streams are in order. In a ``.json`` file, which other tools read, the UI orders processes by their number of
    slices. Arguments are ``debug.args.…`` in a ``.pftrace`` file and ``args.…`` in a ``.json`` file; arrows have
    arguments in a ``.json`` file only.

    Args:
        what: the critical path of one rank or of all, or the outcome of a what-if.
        target: the file to write, ``.pftrace`` or ``.json``, gzipped with ``.gz`` behind it; its folder is made.
        counters: write the recorded job's counters too, as `counters_to_perfetto` does.

    Returns:
        What was written. Slices of the path have the arguments ``category``, ``edge`` (`EdgeKind`), ``gap``
        (`GapKind`), ``weight_us`` (the time on the path, µs), ``kind``, ``operator``, ``module``, ``before`` (what they
        lead to), ``rank``, ``lane``, ``activity``; arrows have ``kind`` (`EdgeKind`), ``weight_us`` (the lag of the
        edge, µs), ``what``, ``category``, ``operator``. Perfetto's UI shows the arguments of slices only.

    Raises:
        TraceError: a file was changed since it was loaded, or the target cannot be written.
        HtagraphError: the target has another ending.
        TypeError: `what` is neither a path nor an outcome.

    Example:
        >>> import tempfile, pathlib, htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> written = to_perfetto(path, pathlib.Path(tempfile.mkdtemp()) / "o.json.gz")
        >>> written.slices > len(path.segments)
        True
    """
    check_ending(target, PERFETTO, "traces for Perfetto")
    path = what
    if not isinstance(path, CriticalPath):
        if not isinstance(getattr(what, "baseline", None), DependencyGraph):
            msg = f"a {type(what).__name__} is not written: give a critical path, or the outcome of a what-if"
            raise TypeError(msg)
        path = path_in_window(path.baseline, None, None)
    job = MergedJob.of(path.graph, target)
    parts: list[Iterable[Event]] = [path_events(path, job.base_ns)]
    if not isinstance(what, CriticalPath):
        # the activities of each rank at their predicted times, and where the predicted time goes
        new, after = what.graph, what.critical_path()
        beside, on_path = replace(job, graph=new, originals=[], predicted=True), _critical(after)
        parts += [beside.activities(rank, on_path, PREDICTED) for rank in sorted(new.ranks)]
        parts.append(predicted_stretches(after, job.base_ns))
    parts += _counters(path.graph, job, None, None) if counters else []
    return job.write(parts, _critical(path))


def _counters(
    graph: DependencyGraph, job: MergedJob, length: pd.DataFrame | None, bandwidth: pd.DataFrame | None
) -> list[Iterator[Event]]:
    return [
        recorded_samples(sampled(graph), job),
        queues(queue_changes(graph) if length is None else length, job),
        bandwidths(bandwidth_changes(graph) if bandwidth is None else bandwidth, job),
        memory(memory_events(graph), job),
    ]


def counters_to_perfetto(
    graph: DependencyGraph, target: str | Path, *, queue_length: pd.DataFrame | None = None,
    memory_bandwidth: pd.DataFrame | None = None,
) -> Written:  # fmt: skip
    """Write the recorded events of every rank with counters over them, for Perfetto's UI.

    Args:
        graph: the job.
        target: the file to write, ``.pftrace`` or ``.json``, gzipped with ``.gz`` behind it; its folder is made.
        queue_length: the result of `htagraph.queue_length`, or rows of it; by default all of it.
        memory_bandwidth: the result of `htagraph.memory_bandwidth`, or rows of it; by default all of it.

    Returns:
        What was written: one counter per stream, its queue length, one per kind of copy, its bandwidth in GB/s, and of
        traces with memory events (``profile_memory=True``) the bytes allocated and reserved on each device. Counters
        that the profiler sampled are recorded events, which are written in any case.

    Raises:
        TraceError: a file was changed since it was loaded, or the target cannot be written.
        HtagraphError: the target has another ending.

    Example:
        >>> import tempfile, pathlib, htagraph as hg
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "o.json.gz"
        >>> counters_to_perfetto(hg.load("data/demo", ranks=[0]), target).counters > 0
        True
    """
    check_ending(target, PERFETTO, "traces for Perfetto")
    job = MergedJob.of(graph, target)
    parts = _counters(graph, job, queue_length, memory_bandwidth)
    return job.write(parts, np.zeros(len(graph.activities), np.int64))


def _critical(path: CriticalPath) -> Array:
    return np.bincount(path.segments.activity, path.segments.length, len(path.graph.activities)).astype(np.int64)


@dataclass(frozen=True)
class Written:
    """What was written, and what of the recorded events could not be drawn as recorded."""

    path: Path
    slices: int
    """Slices that were added."""
    arrows: int
    """Arrows that were added."""
    counters: int
    """Values of counters that were added."""
    moved: int
    """Recorded slices that overlap others of their track in part: they are on tracks of their own, times unchanged."""
    arrows_left_out: int
    """Ends of recorded arrows that have no partner, or whose arrow would point back in time."""
    left_out: int
    """Recorded events without a time, or of a clock that was hours off."""
    not_drawn: int = 0
    """Recorded events for which Perfetto's native format has no form here, such as asynchronous ones."""
    issues: tuple[Issue, ...] = ()
    """What was repaired or lost on reading the files again."""
    predicted: bool = False
    """Whether the graph's times are predicted: then its activities were written instead of the files' events."""

    def __str__(self) -> str:
        added = ((self.slices, "slices"), (self.arrows, "arrows"), (self.counters, "counter values"))
        parts = [f"{count:,} {what}" for count, what in added if count]
        notes = [
            (self.moved, "recorded slices overlap in part and are on tracks of their own, marked (2)"),
            (self.arrows_left_out, "ends of recorded arrows have no partner and are left out"),
            (self.left_out, "recorded events have no usable time and are left out"),
            (self.not_drawn, "recorded events are neither slices, instants nor counters and are in .json files only"),
        ]
        moved = "the activities are at their predicted times, so the files' other events are not there"
        told = [moved] if self.predicted else []
        told += [f"{count:,} {what}" for count, what in notes if count]
        said = "; ".join([f"{', '.join(parts) or 'nothing'} added", *told])
        return f"{self.path}: {said}. Open it in https://ui.perfetto.dev"


@dataclass
class MergedJob:
    """The files of a job while they are written into one."""

    graph: DependencyGraph
    target: Path
    originals: list[Original]
    pid_of: PidOf
    base_ns: int
    predicted: bool

    @staticmethod
    def of(graph: DependencyGraph, target: str | Path) -> MergedJob:
        """Return a job as it goes into a file, whose ending says the format."""
        originals = [survey(graph, rank) for rank, trace in sorted(graph.traces.items()) if are_copied(trace)]
        predicted = not all(_as_recorded(graph, original) for original in originals)
        if predicted:  # what a change left where it was would not fit to the rest
            originals = []
        first = [original.first_ns for original in originals if original.first_ns is not None]
        base = min([*first, graph.origin_ns]) // 1000 * 1000 if graph.vertex_count else 0
        return MergedJob(graph, Path(target), originals, (PidOfRank if is_native(target) else PidOf)(), base, predicted)

    def write(self, parts: Iterable[Iterable[Event]], critical: Array) -> Written:
        """Write everything: the recorded events, and parts added to them, each with tracks of its own.

        `critical` is how long each activity is on the path, ns.
        """
        count: Counter[str] = Counter()
        native = is_native(self.target)
        sources = [trace.path for trace in self.graph.traces.values()]
        left_out = not_drawn = 0
        with (PacketWriter if native else TraceWriter)(self.target, sources=sources) as writer:
            writer.begin(self._header())
            for each in self.originals:
                lanes = {(lane.pid, lane.tid): lane for lane in self.graph.lanes if lane.rank == each.rank}
                on_path = self._on_path(each, critical)
                file = (RecordedPackets if native else RecordedEvents)(each, self.base_ns, self.pid_of, on_path, lanes)
                file.write(writer)
                left_out, not_drawn = left_out + file.left_out, not_drawn + file.not_drawn
            # activities of ranks that no file shows as they are in the graph
            drawn = sorted(set(self.graph.ranks) - {original.rank for original in self.originals})
            activities = (self.activities(rank, critical) for rank in drawn)
            for part in chain(activities, (_counted(part, count) for part in parts)):
                writer.add(part)
        return Written(
            path=self.target, slices=count["X"], arrows=count["s"], counters=count["C"],
            moved=sum(original.moved for original in self.originals),
            arrows_left_out=sum(original.arrows.ends_left_out for original in self.originals),
            left_out=left_out, not_drawn=not_drawn,
            issues=tuple(issue for original in self.originals for issue in original.issues),
            predicted=self.predicted,
        )  # fmt: skip

    def _on_path(self, original: Original, critical: Array) -> Array:
        acts = self.graph.activities
        rows = np.arange(len(acts))[acts.of_rank(original.rank)]
        rows = rows[(critical[rows] > 0) & np.isin(acts.event[rows], original.index)]
        on_path = np.zeros(len(original.index), np.int64)
        on_path[np.searchsorted(original.index, acts.event[rows])] = critical[rows]
        return on_path

    def _header(self) -> dict[str, Any]:
        headers = [original.header for original in self.originals]
        first = headers[0].items() if headers else ()
        agreed = {key: value for key, value in first if all(key in each and each[key] == value for each in headers)}
        return agreed | {"baseTimeNanoseconds": self.base_ns} | trace_writer.FOR_VIEWING

    def device_pids(self) -> dict[tuple[int, int], int]:
        """Return the process of each rank and device; of a rank's host under device -1, if it has a device of that."""
        pids: dict[tuple[int, int], int] = {}
        recorded = {original.rank for original in self.originals}
        for lane in self.graph.lanes:
            pid = lane.pid if lane.rank in recorded else ""
            pids.setdefault((lane.rank, max(lane.device, -1)), self.pid_of[lane.rank, pid])
        return pids

    def activities(self, rank: int, critical: Array, note: str = "") -> Iterator[Event]:
        """Yield the activities of a rank as the graph has them; its process is named by rank and the note."""
        graph, acts = self.graph, self.graph.activities
        rows = np.arange(len(acts))[acts.of_rank(rank)]
        scene = scene_of(graph, rows, rows=nesting_tracks)
        tracks, place = tracks_of(scene.lane, scene.row)
        pid = self.pid_of[rank, note]
        names, name = np.unique(acts.name[rows], return_inverse=True)
        kinds, kind = np.unique(acts.kind[rows], return_inverse=True)
        texts = [graph.names[each] for each in names.tolist()] + [ActivityKind(each).label for each in kinds.tolist()]
        on_path = critical[rows] > 0
        args = row_texts((
            b'{"activity":', (trace_writer.INTEGER, rows), (b',"critical_us":', on_path),
            (trace_writer.MICROSECONDS, np.where(on_path, critical[rows], NO_NUMBER)), b"}",
        ), len(rows))  # fmt: skip
        yield Slices(
            [(pid, 1 + tid) for tid in range(len(tracks))], texts, place, scene.start - self.base_ns, scene.duration,
            name, len(names) + kind, args.spans, args.text,
        )  # fmt: skip
        yield metadata("process_name", pid, 0, name=f"rank {rank}{note}")
        for tid, (lane, track) in enumerate(tracks):
            label = scene.lanes[lane].label
            yield metadata("thread_name", pid, 1 + tid, name=f"{label} ({track + 1})" if track else label)


def _counted(events: Iterable[Event], count: Counter[str]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, dict):
            count[event["ph"]] += 1
        else:
            count["X" if isinstance(event, Slices) else "C"] += len(event)
        yield event


def _as_recorded(graph: DependencyGraph, original: Original) -> bool:
    """Return whether the activities of a rank lie where its file has them; False where their times are predicted."""
    rows = np.arange(len(graph.activities))[graph.activities.of_rank(original.rank)]
    event = graph.activities.event[rows]
    rows, event = rows[np.isin(event, original.index)], event[np.isin(event, original.index)]
    at = np.searchsorted(original.index, event)
    start, end = original.start[at], original.start[at] + original.duration[at]
    return bool(np.array_equal(graph.time[2 * rows], start) and np.array_equal(graph.time[2 * rows + 1], end))


def queues(table: pd.DataFrame, job: MergedJob) -> Iterator[Values]:
    """Yield the queue length of each stream; the table is that of `htagraph.queue_length`, or rows of it."""
    pids = job.device_pids()
    for (rank, device, stream), rows in _each(table, "rank", "device", "stream"):
        value = rows["queue_length"].to_numpy()
        yield Values(pids[rank, device], "queue length", f"stream {stream}", COUNT, _moments(rows, job), value)


def bandwidths(table: pd.DataFrame, job: MergedJob) -> Iterator[Values]:
    """Yield the bandwidth of each kind of copy; the table is that of `htagraph.memory_bandwidth`, or rows of it."""
    table = table[np.isfinite(table["bandwidth_gb_s"])]  # JSON has no infinity
    devices = sorted(job.device_pids().items(), reverse=True)
    pid_of_rank = {rank: pid for (rank, device), pid in devices if device >= 0}
    for (rank, copy), rows in _each(table, "rank", "copy"):
        value = rows["bandwidth_gb_s"].to_numpy(np.float64).round(_DECIMALS)
        yield Values(pid_of_rank[rank], GB_S, copy, GB_S, _moments(rows, job), value)


def recorded_samples(table: pd.DataFrame, job: MergedJob) -> Iterator[Values]:
    """Yield the sampled counters of ranks whose recorded events are not copied; the table is that of `sampled`."""
    if job.predicted:
        return  # recorded moments are not those of predicted activities
    copied = [original.rank for original in job.originals]
    table = table[~table["rank"].isin(copied) & np.isfinite(table["value"])]
    pids = job.device_pids()
    for (rank, device, counter), rows in _each(table, "rank", "device", "counter"):
        moment = _moments(rows, job)
        drawn = moment >= 0
        pid = pids.get((rank, device), job.pid_of[rank, ""])
        series = f"device {device}" if device >= 0 else ""
        yield Values(pid, counter, series, "", moment[drawn], rows["value"].to_numpy().round(_DECIMALS)[drawn])


def memory(table: pd.DataFrame, job: MergedJob) -> Iterator[Values]:
    """Yield the bytes allocated and reserved on each device; the table is that of `htagraph.memory.timeline`."""
    pids = job.device_pids()
    host = {rank: pid for (rank, device), pid in sorted(pids.items(), reverse=True)}  # of the lowest device: the host
    for (rank, device), rows in _each(table, "rank", "device"):
        number = device.partition(":")[2]
        pid = pids.get((rank, int(number) if number.isdigit() else -1), host.get(rank))
        if pid is None:  # a rank of which nothing but its memory was recorded
            continue
        moment = _moments(rows, job)
        for what in ("allocated", "reserved"):
            value = rows[f"{what}_bytes"].to_numpy()
            if value.any():
                yield Values(pid, f"memory {what}", device, BYTES, moment[moment >= 0], value[moment >= 0])


def _each(table: pd.DataFrame, *keys: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the values of some columns and the rows that have them, in the order of the table."""
    yield from table.groupby(list(keys), sort=False)


def _moments(rows: pd.DataFrame, job: MergedJob) -> Array:
    """Return when a counter changes, ns since the base of what is written."""
    since = np.rint(rows["time_us"].to_numpy(np.float64) * 1000).astype(np.int64)
    return np.asarray(since + job.graph.origin_ns - job.base_ns)
