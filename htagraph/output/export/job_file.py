"""One file over all ranks of a job: their recorded events, or where times are predicted its activities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.issues import Issue
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.originals import Original, survey
from htagraph.output.export.recorded_events import PidOf, RecordedEvents
from htagraph.output.export.rows import Rows
from htagraph.output.export.trace_writer import FOR_VIEWING, RawEvent, TraceWriter, us
from htagraph.output.export.tracks import nesting_tracks
from htagraph.output.phrases import plural
from htagraph.trace.reading.collect.growing import Interner

__all__ = ["JobFile", "Written", "named"]

Array: TypeAlias = npt.NDArray[Any]


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
        added = ((self.slices, "slice"), (self.arrows, "arrow"), (self.counters, "counter value"))
        parts = [plural(count, what) for count, what in added if count]
        notes = [
            (self.moved, "recorded slice", "put on separate tracks, marked (2), because of partial overlap"),
            (self.arrows_left_out, "arrow end", "without a partner left out"),
            (self.left_out, "recorded event", "without a usable time left out"),
        ]
        left_out = "".join(f"; {plural(count, what)} {done}" for count, what, done in notes if count)
        if self.predicted:
            left_out = (
                "; the activities are at their predicted times, so the files' other events are not there" + left_out
            )
        return f"{self.path}: {', '.join(parts) or 'nothing'} added{left_out}. Open it in https://ui.perfetto.dev"


@dataclass
class JobFile:
    """The files of a job while they are written into one."""

    graph: DependencyGraph
    originals: list[Original]
    pid_of: PidOf
    base_ns: int
    predicted: bool

    @staticmethod
    def of(graph: DependencyGraph) -> JobFile:
        """Return the file of a job before anything is written; its recorded files are read again for that."""
        originals = [survey(graph, rank) for rank in sorted(graph.traces)]
        predicted = not all(_as_recorded(graph, original) for original in originals)
        if predicted:  # what a change left where it was would not fit to the rest
            originals = []
        first = [original.first_ns for original in originals if original.first_ns is not None]
        return JobFile(
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
            yield named("process_name", pid, 0, f"rank {rank}{note}")
            for (lane, track), tid in tids.items():
                label = graph.lanes[lane].label
                yield named("thread_name", pid, 1 + tid, f"{label} ({track + 1})" if track else label)


def _slice(pid: int, tid: int, name: str, ts: Any, dur: Any, **more: Any) -> RawEvent:  # noqa: ANN401 - int or Decimal
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, **more}


def named(what: str, pid: int, tid: int, name: str) -> RawEvent:
    """Return the event that names a process or a thread; `what` is ``process_name`` or ``thread_name``."""
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _counted(events: Iterable[RawEvent | Rows], count: Counter[str]) -> Iterator[RawEvent | Rows]:
    """Yield events, counted by phase; rows are slices."""
    for event in events:
        if isinstance(event, Rows):
            count["X"] += len(event)
        else:
            count[event["ph"]] += 1
        yield event


def _as_recorded(graph: DependencyGraph, original: Original) -> bool:
    """Return whether the activities of a rank lie where its file has them; False where their times are predicted."""
    rows = np.arange(len(graph.activities))[graph.activities.of_rank(original.rank)]
    event = graph.activities.event[rows]
    rows, event = rows[np.isin(event, original.index)], event[np.isin(event, original.index)]
    at = np.searchsorted(original.index, event)
    start, end = original.start[at], original.start[at] + original.duration[at]
    return bool(np.array_equal(graph.time[2 * rows], start) and np.array_equal(graph.time[2 * rows + 1], end))
