"""Critical paths and counters as tracks over the recorded events, for Perfetto's UI: one file over all ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.issues import Issue
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.activities import BETWEEN
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.analysis_tracks import NEXT_CRITICAL, next_critical, stretches, waits
from htagraph.output.export.endings import PERFETTO, check_ending
from htagraph.output.export.originals import Original, survey
from htagraph.output.export.path_slices import CATEGORY, PATH_PID, path_slices
from htagraph.output.export.recorded_events import PidOf, RecordedEvents
from htagraph.output.export.rows import Rows
from htagraph.output.export.trace_writer import FOR_VIEWING, RawEvent, TraceWriter, us
from htagraph.output.export.tracks import nesting_tracks
from htagraph.queries.attribution import names_of, operator_of
from htagraph.queries.counter_series import bandwidth_changes, queue_changes
from htagraph.queries.paths import CATEGORIES, CriticalPath
from htagraph.trace.reading.collect.growing import Interner

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.whatif.outcome import Outcome

__all__ = ["Written", "counters_to_perfetto", "to_perfetto"]

Array: TypeAlias = npt.NDArray[Any]

_WHOLE_TID = PATH_PID  # its main thread, which the UI shows first
_FIRST_TID = _WHOLE_TID + 1
_PREDICTED_TID = 1_000_000
"""The track of a prediction's path: behind those of any lanes, waits and near-critical paths."""
_FLOW_IDS = 2**60
"""Ids of the path's arrows count from here: above those of any rank."""


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
        ]
        left_out = "".join(f"; {count:,} {what}" for count, what in notes if count)
        if self.predicted:
            left_out = (
                "; the activities are at their predicted times, so the files' other events are not there" + left_out
            )
        return f"{self.path}: {', '.join(parts) or 'nothing'} added{left_out}. Open it in https://ui.perfetto.dev"


@dataclass
class _Job:
    """The files of a job while they are written into one."""

    graph: DependencyGraph
    originals: list[Original]
    pid_of: PidOf
    base_ns: int
    predicted: bool

    @staticmethod
    def of(graph: DependencyGraph) -> _Job:
        originals = [survey(graph, rank) for rank in sorted(graph.traces)]
        predicted = not all(_as_recorded(graph, original) for original in originals)
        if predicted:  # what a change left where it was would not fit to the rest
            originals = []
        first = [original.first_ns for original in originals if original.first_ns is not None]
        return _Job(
            graph, originals, PidOf(), min([*first, graph.origin_ns]) // 1000 * 1000 if graph.vertex_count else 0,
            predicted,
        )  # fmt: skip

    def ts(self, common_ns: int) -> Any:  # noqa: ANN401 - int or Decimal
        """Return a moment on the common clock as the µs of the file."""
        return us(int(common_ns) - self.base_ns)

    @property
    def drawn(self) -> list[int]:
        """The ranks whose activities are written, because no file shows them as they are in the graph."""
        return sorted(set(self.graph.ranks) - {original.rank for original in self.originals})

    def write(self, target: Path, added: Iterable[RawEvent | Rows], critical: Array) -> Written:
        """Write everything; `critical` is how long each activity is on the path, ns."""
        count: Counter[str] = Counter()
        with TraceWriter(target, sources=[trace.path for trace in self.graph.traces.values()]) as writer:
            writer.begin(self._header())
            files = [
                RecordedEvents(original, self.base_ns, self.pid_of, self._on_path(original, critical))
                for original in self.originals
            ]
            for block in chain.from_iterable(files):
                writer.add(block)
            writer.add(self.activities(self.drawn, critical))
            writer.add(_counted(added, count))
        return Written(
            path=Path(target), slices=count["X"], arrows=count["s"], counters=count["C"],
            moved=sum(original.moved for original in self.originals),
            arrows_left_out=sum(original.arrows.ends_left_out for original in self.originals),
            left_out=sum(file.left_out for file in files),
            issues=tuple(issue for original in self.originals for issue in original.issues),
            predicted=self.predicted,
        )  # fmt: skip

    def _on_path(self, original: Original, critical: Array) -> Array:
        """Return how long each slice of a file is on the path, ns."""
        acts = self.graph.activities
        rows = np.arange(len(acts))[acts.of_rank(original.rank)]
        rows = rows[(critical[rows] > 0) & np.isin(acts.event[rows], original.index)]
        on_path = np.zeros(len(original.index), np.int64)
        on_path[np.searchsorted(original.index, acts.event[rows])] = critical[rows]
        return on_path

    def _header(self) -> dict[str, Any]:
        """Return the root keys on which all files agree."""
        headers = [original.header for original in self.originals]
        first = headers[0].items() if headers else ()
        agreed = {key: value for key, value in first if all(key in each and each[key] == value for each in headers)}
        return agreed | {"baseTimeNanoseconds": self.base_ns} | FOR_VIEWING

    def counter(self, pid: int | str, time_us: float, name: str, values: Mapping[str, int | Decimal]) -> RawEvent:
        """Return a value of a counter of a process; `time_us` is since the job's first activity."""
        moment = self.graph.origin_ns + round(time_us * 1000)
        return {"ph": "C", "pid": pid, "name": name, "ts": self.ts(moment), "args": dict(values)}

    def device_pids(self) -> dict[tuple[int, int], int]:
        """Return the process of each rank and device, of any device of a rank also under device -1."""
        lanes = sorted((lane for lane in self.graph.lanes if lane.device >= 0), key=lambda lane: -lane.device)
        pids = [self.pid_of[lane.rank, "" if lane.rank in self.drawn else lane.pid] for lane in lanes]
        of_device = {(lane.rank, lane.device): pid for lane, pid in zip(lanes, pids, strict=True)}
        return {(lane.rank, -1): pid for lane, pid in zip(lanes, pids, strict=True)} | of_device

    def activities(self, ranks: list[int], critical: Array, note: str = "") -> Iterator[RawEvent]:
        """Yield the activities of ranks as the graph has them; processes are named by rank and the note."""
        graph, acts = self.graph, self.graph.activities
        for rank in ranks:
            rows = np.arange(len(acts))[acts.of_rank(rank)]
            start = graph.time[2 * rows]
            duration = graph.time[2 * rows + 1] - start
            level = nesting_tracks(acts.lane[rows], start, duration)
            tids = Interner[tuple[int, int]]()
            pid = self.pid_of[rank, note]
            for row, begin, lasted, track in zip(
                *(each.tolist() for each in (rows, start, duration, level)), strict=True
            ):
                tid = 1 + tids[int(acts.lane[row]), track]
                name, kind = graph.names[acts.name[row]], ActivityKind(acts.kind[row]).label
                args = {"activity": row} | ({"critical_us": us(critical[row])} if critical[row] else {})
                yield _slice(pid, tid, name, self.ts(begin), us(lasted), cat=kind, args=args)
            yield _named("process_name", pid, 0, f"rank {rank}{note}")
            for (lane, track), tid in tids.items():
                label = graph.lanes[lane].label
                yield _named("thread_name", pid, 1 + tid, f"{label} ({track + 1})" if track else label)


def to_perfetto(what: CriticalPath | Outcome, target: str | Path, *, counters: bool = False) -> Written:
    """Write the recorded events of every rank with the critical path over them, for Perfetto's UI.

    The process ``critical path`` has a track that says on what the time went, by rank and category and below that by
    operator or kernel; a track for each thread and stream that the path runs on, with arrows from one to the other;
    three with near-critical paths (`CriticalPath.near`); and one for each rank that waited until the path came from
    another, with arrows to what it waited for longest. All ranks are on the common clock. Recorded events on the path
    have the argument ``critical_us``. Nothing is dropped without a word, see `Written`.

    Where the path is of a prediction (`Outcome.critical_path`), the activities are written at their predicted times, in
    the place of the recorded events. Of an `Outcome`, both are written: the recorded events with their critical path,
    each rank's activities at their predicted times as a process ``rank N, predicted``, and where the predicted time
    goes. Perfetto's UI orders processes by their number of slices; no JSON file can tell it to show one first.

    Args:
        what: the critical path of one rank or of all, or the outcome of a what-if.
        target: the file to write, ``.json``, or gzipped ``.json.gz``; its folder is made.
        counters: write the recorded job's counters too, as `counters_to_perfetto` does.

    Returns:
        What was written. Slices of the path have the arguments ``category``, ``edge`` (`EdgeKind`), ``gap``
        (`GapKind`), ``weight_us`` (the time on the path, µs), ``kind``, ``operator``, ``module``, ``before`` (what they
        lead to), ``rank``, ``lane``, ``activity``; arrows have ``kind`` (`EdgeKind`), ``weight_us`` (the lag of the
        edge, µs), ``what``, ``category``, ``operator``. Perfetto's UI shows the arguments of slices only.

    Raises:
        TraceError: a file was changed since it was loaded, or the target cannot be written.
        HtagraphError: the target has another ending.
        TypeError: it is neither a path nor an outcome.

    Example:
        >>> import tempfile, pathlib, htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> written = to_perfetto(path, pathlib.Path(tempfile.mkdtemp()) / "o.json.gz")
        >>> written.slices > len(path.segments)
        True
    """
    check_ending(target, PERFETTO, "traces for Perfetto")
    path = what if isinstance(what, CriticalPath) else _recorded_path(what)
    job = _Job.of(path.graph)
    added = _path_events(path, job)
    if not isinstance(what, CriticalPath):
        added = chain(added, _predicted(what, job))
    if counters:
        graph = path.graph
        added = chain(added, _queues(queue_changes(graph), job), _bandwidths(bandwidth_changes(graph), job))
    return job.write(Path(target), added, _critical(path))


def _recorded_path(outcome: Outcome) -> CriticalPath:
    from htagraph.queries.path_window import path_in_window

    if not isinstance(getattr(outcome, "baseline", None), DependencyGraph):
        msg = f"a {type(outcome).__name__} is not written: give a critical path, or the outcome of a what-if"
        raise TypeError(msg)
    return path_in_window(outcome.baseline, None, None)


def _predicted(outcome: Outcome, job: _Job) -> Iterator[RawEvent]:
    """Yield the activities of all ranks at their predicted times, and where the predicted time goes."""
    path = outcome.critical_path()
    beside = replace(job, graph=outcome.graph, originals=[], predicted=True)
    yield from beside.activities(sorted(outcome.graph.ranks), _critical(path), ", predicted")
    if len(path.segments):
        yield from stretches(path, _PREDICTED_TID, job.base_ns)
        yield _named("thread_name", PATH_PID, _PREDICTED_TID, "where the predicted time goes")


def counters_to_perfetto(
    graph: DependencyGraph,
    target: str | Path,
    *,
    queue_length: pd.DataFrame | None = None,
    memory_bandwidth: pd.DataFrame | None = None,
) -> Written:
    """Write the recorded events of every rank with counters over them, for Perfetto's UI.

    Args:
        graph: the job.
        target: the file to write, ``.json``, or gzipped ``.json.gz``; its folder is made.
        queue_length: the result of `htagraph.queue_length`, or rows of it; by default all of it.
        memory_bandwidth: the result of `htagraph.memory_bandwidth`, or rows of it; by default all of it.

    Returns:
        What was written: one counter per stream, its queue length, and one per kind of copy, its bandwidth in GB/s.

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
    job = _Job.of(graph)
    queues = queue_changes(graph) if queue_length is None else queue_length
    copies = bandwidth_changes(graph) if memory_bandwidth is None else memory_bandwidth
    none = np.zeros(len(graph.activities), np.int64)
    return job.write(Path(target), chain(_queues(queues, job), _bandwidths(copies, job)), none)


def _queues(table: pd.DataFrame, job: _Job) -> Iterator[RawEvent]:
    columns = (table[name].tolist() for name in ("rank", "device", "stream", "time_us", "queue_length"))
    pids = job.device_pids()
    for rank, device, stream, moment, length in zip(*columns, strict=True):
        yield job.counter(pids[rank, device], moment, "queue length", {f"stream {stream}": length})


def _bandwidths(table: pd.DataFrame, job: _Job) -> Iterator[RawEvent]:
    table = table[np.isfinite(table["bandwidth_gb_s"])]  # JSON has no infinity
    columns = (table[name].tolist() for name in ("rank", "copy", "time_us", "bandwidth_gb_s"))
    pids = job.device_pids()
    for rank, copy, moment, bandwidth in zip(*columns, strict=True):
        yield job.counter(pids[rank, -1], moment, "GB/s", {copy: Decimal(f"{bandwidth:.6f}")})


def _as_recorded(graph: DependencyGraph, original: Original) -> bool:
    """Return whether the activities of a rank lie where its file has them; False where their times are predicted."""
    rows = np.arange(len(graph.activities))[graph.activities.of_rank(original.rank)]
    event = graph.activities.event[rows]
    rows, event = rows[np.isin(event, original.index)], event[np.isin(event, original.index)]
    at = np.searchsorted(original.index, event)
    start, end = original.start[at], original.start[at] + original.duration[at]
    return bool(np.array_equal(graph.time[2 * rows], start) and np.array_equal(graph.time[2 * rows + 1], end))


def _critical(path: CriticalPath) -> Array:
    """Return how long each activity is on the path, ns."""
    return np.bincount(path.segments.activity, path.segments.length, len(path.graph.activities)).astype(np.int64)


def _path_events(path: CriticalPath, job: _Job) -> Iterator[RawEvent | Rows]:
    yield _named("process_name", PATH_PID, 0, "critical path")
    if not len(path.segments):
        return
    tids = _path_tracks(path)
    yield from path_slices(path, tids, job.base_ns)
    yield from stretches(path, _WHOLE_TID, job.base_ns)
    yield from _path_arrows(path, tids, job)
    behind = _FIRST_TID + len(tids)
    yield from next_critical(path, behind, job.base_ns)
    yield from waits(path, tids, (behind + NEXT_CRITICAL, _FLOW_IDS + len(path.segments)), job.base_ns)
    yield _named("thread_name", PATH_PID, _WHOLE_TID, "where the time goes")
    several = len(path.graph.ranks) > 1
    for lane, tid in tids.items():
        where = path.graph.lanes[lane] if lane >= 0 else BETWEEN
        yield _named("thread_name", PATH_PID, tid, f"rank {where.rank} {where.label}" if several else where.label)


def _path_tracks(path: CriticalPath) -> dict[int, int]:
    """Return the number of the track of each lane on the path: by rank, threads before streams."""
    lanes = path.graph.lanes
    on_path = np.unique(path.graph.activities.lane[path.segments.place]).tolist()
    order = sorted(
        on_path, key=lambda lane: (lanes[lane].rank, lanes[lane].stream, lane) if lane >= 0 else (-1, -1, lane)
    )
    return {lane: _FIRST_TID + number for number, lane in enumerate(order)}


def _path_arrows(path: CriticalPath, tids: Mapping[int, int], job: _Job) -> Iterator[RawEvent]:
    """Yield an arrow wherever the path changes lane: from the end of one slice to the start of the next."""
    graph, edges, parts = path.graph, path.graph.edges, path.segments
    acts = graph.activities
    moments = graph.time[edges.source[path.edges]]
    crosses = acts.lane[edges.source[path.edges] >> 1] != acts.lane[edges.target[path.edges] >> 1]
    crossing = {int(moments[at]): int(path.edges[at]) for at in np.flatnonzero(crosses)[::-1].tolist()}
    lane = acts.lane[parts.place]
    heads = np.flatnonzero(lane[1:] != lane[:-1]) + 1
    operators = names_of(graph, operator_of(graph, parts.region[heads]))
    for at, operator in zip(heads.tolist(), operators.tolist(), strict=True):
        edge = crossing.get(int(parts.start[at]), -1)
        kind = edges.kind[edge] if edge >= 0 else parts.edge[at]
        label = EdgeKind(kind).label if kind >= 0 else ""
        weight = us(int(edges.lag[edge])) if edge >= 0 else 0
        what, category = graph.names[acts.name[parts.activity[at]]], CATEGORIES[parts.category[at]]
        args = {"kind": label, "weight_us": weight, "what": what, "category": category}
        args |= {"operator": operator} if operator else {}
        common = {"cat": CATEGORY, "name": label, "id": _FLOW_IDS + at, "pid": PATH_PID, "args": args}
        tail = int(parts.start[at - 1])  # at its end, the next slice of its track may begin
        last = job.ts(max(tail, tail + int(parts.length[at - 1]) - 1))
        yield {"ph": "s", **common, "tid": tids[int(lane[at - 1])], "ts": last}
        yield {"ph": "f", **common, "tid": tids[int(lane[at])], "ts": job.ts(parts.start[at]), "bp": "e"}


def _slice(pid: int, tid: int, name: str, ts: Any, dur: Any, **more: Any) -> RawEvent:  # noqa: ANN401 - int or Decimal
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, **more}


def _named(what: str, pid: int, tid: int, name: str) -> RawEvent:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _counted(events: Iterable[RawEvent | Rows], count: Counter[str]) -> Iterator[RawEvent | Rows]:
    """Yield events, counted by phase; rows are slices."""
    for event in events:
        if isinstance(event, Rows):
            count["X"] += len(event)
        else:
            count[event["ph"]] += 1
        yield event
