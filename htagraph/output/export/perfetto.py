"""Critical paths and counters as tracks over the recorded events, for Perfetto's UI: one file over all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import BETWEEN
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.counter_tracks import bandwidths, memory, queues
from htagraph.output.export.path_tracks import (
    CATEGORY,
    NEXT_CRITICAL,
    PATH_PID,
    next_critical,
    path_slices,
    stretches,
    waits,
)
from htagraph.output.export.perfetto_job import Event, Job, Written, lane_order
from htagraph.output.export.recorded_events import PREDICTED
from htagraph.output.export.trace_writer import RawEvent, metadata, us
from htagraph.output.whole_files import PERFETTO, check_ending
from htagraph.queries.attribution import names_of, operator_of
from htagraph.queries.counter_series import bandwidth_changes, queue_changes
from htagraph.queries.paths import CATEGORIES, CriticalPath
from htagraph.queries.recorded_events import memory_events

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.whatif.outcome import Outcome

__all__ = ["Written", "counters_to_perfetto", "to_perfetto"]


_WHOLE_TID = PATH_PID  # its main thread, which the UI shows first
_FIRST_TID = _WHOLE_TID + 1
_PREDICTED_TID = 1_000_000
"""The track of a prediction's path: behind those of any lanes, waits and near-critical paths."""
_FLOW_IDS = 2**60
"""Ids of the path's arrows count from here: above those of any rank."""


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
    goes.

    In a ``.pftrace`` file the path is on top, with where its time goes on its first line, and ranks, their threads and
    their streams are in order. In a ``.json`` file, which other tools read, the UI orders processes by their number of
    slices. Arguments are ``debug.args.…`` in the one and ``args.…`` in the other; arrows have arguments in the other.

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
    job = Job.of(path.graph, target)
    parts = [_path_events(path, job)]
    if not isinstance(what, CriticalPath):
        parts += _predicted(what, job)
    if counters:
        parts += _counters(path.graph, job)
    return job.write(parts, _critical(path))


def _counters(graph: DependencyGraph, job: Job) -> list[Iterator[Event]]:
    return [
        queues(queue_changes(graph), job), bandwidths(bandwidth_changes(graph), job), memory(memory_events(graph), job)
    ]  # fmt: skip


def _recorded_path(outcome: Outcome) -> CriticalPath:
    from htagraph.queries.paths import path_in_window

    if not isinstance(getattr(outcome, "baseline", None), DependencyGraph):
        msg = f"a {type(outcome).__name__} is not written: give a critical path, or the outcome of a what-if"
        raise TypeError(msg)
    return path_in_window(outcome.baseline, None, None)


def _predicted(outcome: Outcome, job: Job) -> list[Iterator[Event]]:
    """Return the activities of each rank at their predicted times, and where the predicted time goes."""
    path = outcome.critical_path()
    beside, critical = replace(job, graph=outcome.graph, originals=[], predicted=True), _critical(path)
    ranks = [beside.activities(rank, critical, PREDICTED) for rank in sorted(outcome.graph.ranks)]
    return [*ranks, _predicted_stretches(path, job)]


def _predicted_stretches(path: CriticalPath, job: Job) -> Iterator[Event]:
    if len(path.segments):
        yield from stretches(path, _PREDICTED_TID, job.base_ns)
        yield metadata("thread_name", PATH_PID, _PREDICTED_TID, name="where the predicted time goes")
        below = _WHOLE_TID  # where the recorded time goes
        yield metadata("thread_sort_index", PATH_PID, _PREDICTED_TID, sort_index=below)


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
        target: the file to write, ``.pftrace`` or ``.json``, gzipped with ``.gz`` behind it; its folder is made.
        queue_length: the result of `htagraph.queue_length`, or rows of it; by default all of it.
        memory_bandwidth: the result of `htagraph.memory_bandwidth`, or rows of it; by default all of it.

    Returns:
        What was written: one counter per stream, its queue length, one per kind of copy, its bandwidth in GB/s, and of
        traces with memory events (``profile_memory=True``) the bytes allocated and reserved on each device.

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
    job = Job.of(graph, target)
    parts = _counters(graph, job)
    if queue_length is not None:
        parts[0] = queues(queue_length, job)
    if memory_bandwidth is not None:
        parts[1] = bandwidths(memory_bandwidth, job)
    return job.write(parts, np.zeros(len(graph.activities), np.int64))


def _critical(path: CriticalPath) -> Array:
    """Return how long each activity is on the path, ns."""
    return np.bincount(path.segments.activity, path.segments.length, len(path.graph.activities)).astype(np.int64)


def _path_events(path: CriticalPath, job: Job) -> Iterator[Event]:
    yield metadata("process_name", PATH_PID, 0, name="critical path")
    if not len(path.segments):
        return
    tids = _path_tracks(path)
    yield from path_slices(path, tids, job.base_ns)
    yield from stretches(path, _WHOLE_TID, job.base_ns)
    yield from _path_arrows(path, tids, job)
    behind = _FIRST_TID + len(tids)
    yield from next_critical(path, behind, job.base_ns)
    yield from waits(path, tids, (behind + NEXT_CRITICAL, _FLOW_IDS + len(path.segments)), job.base_ns)
    yield metadata("thread_name", PATH_PID, _WHOLE_TID, name="where the time goes")
    several = len(path.graph.ranks) > 1
    for lane, tid in tids.items():
        where = path.graph.lanes[lane] if lane >= 0 else BETWEEN
        yield metadata(
            "thread_name", PATH_PID, tid, name=f"rank {where.rank} {where.label}" if several else where.label
        )


def _path_tracks(path: CriticalPath) -> dict[int, int]:
    """Return the number of the track of each lane on the path: by rank, threads before streams."""
    lanes = path.graph.lanes
    on_path = np.unique(path.graph.activities.lane[path.segments.place]).tolist()
    return {
        lane: _FIRST_TID + number for number, lane in enumerate(sorted(on_path, key=lambda at: lane_order(lanes, at)))
    }


def _path_arrows(path: CriticalPath, tids: Mapping[int, int], job: Job) -> Iterator[RawEvent]:
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
