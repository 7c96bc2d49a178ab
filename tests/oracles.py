"""Slow, obvious versions of what the package computes fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

import htagraph as hg
from htagraph import ActivityKind, DependencyGraph, EdgeKind
from tests.strategies import KIND_OF

Json: TypeAlias = dict[str, Any]

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
RUNTIME = {"cuda_runtime", "cuda_driver"}


@dataclass(frozen=True)
class Work:
    """A piece of device work of a generated trace, whole µs."""

    kind: str
    start: int
    end: int
    stream: int


def table_of(result: Any) -> pd.DataFrame:
    """Return an analysis' result as a table, of what-if that of nothing changed."""
    if isinstance(result, hg.Scenario):
        return result.run().step_times()
    return result if isinstance(result, pd.DataFrame) else result.to_frame()


def works(events: Iterable[Json]) -> list[Work]:
    """Return the device work of a generated trace."""
    return [
        Work(KIND_OF[event["name"]], event["ts"], event["ts"] + event["dur"], event["args"]["stream"])
        for event in events
        if event.get("cat") in DEVICE
    ]


def kinds_by_moment(done: Sequence[Work]) -> list[frozenset[str]]:
    """Return, for each µs from the first to the last work, which kinds of work run in it."""
    if not done:
        return []
    first, last = min(work.start for work in done), max(work.end for work in done)
    return [frozenset(work.kind for work in done if work.start <= at < work.end) for at in range(first, last)]


def temporal(done: Sequence[Work]) -> dict[str, int]:
    """Return the parts of the temporal breakdown, µs."""
    order = ("computation", "communication", "memory")
    parts = Counter(next((kind for kind in order if kind in at), "idle") for at in kinds_by_moment(done))
    return {part: parts[part] for part in (*order, "idle")}


def combinations(done: Sequence[Work]) -> dict[frozenset[str], int]:
    """Return for how many µs each combination of kinds runs at once."""
    return dict(Counter(kinds for kinds in kinds_by_moment(done) if kinds))


def pauses(done: Sequence[Work]) -> int:
    """Return for how many µs nothing runs between the first and the last work."""
    return sum(not kinds for kinds in kinds_by_moment(done))


def join(events: Sequence[Json]) -> Counter[tuple[int, float, float, float]]:
    """Return (correlation, launch duration, work duration, delay), µs, of each launch and its work, from raw JSON."""
    calls: dict[int, Json] = {}
    for event in events:
        correlation = event.get("args", {}).get("correlation", 0)
        if event.get("cat") in RUNTIME and correlation > 0:
            calls.setdefault(correlation, event)
    found: Counter[tuple[int, float, float, float]] = Counter()
    for event in events:
        call = calls.get(event.get("args", {}).get("correlation", 0))
        if event.get("cat") in DEVICE and call:
            delay = max(0, event["ts"] - call["ts"] - call["dur"])
            found[event["args"]["correlation"], call["dur"], event["dur"], delay] += 1
    return found


def parents(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each interval the last before it that is around it; or -1.

    The intervals are sorted by (start, -end). Two empty intervals at one moment contain one another in their order. An
    interval that ends where an empty one lies contains it, unless the thread has begun something else at that moment.
    """
    found = []
    for i, (start, end) in enumerate(intervals):
        begun = any(earlier == start < over for earlier, over in intervals[:i])
        around = [
            j
            for j, (outer_start, outer_end) in enumerate(intervals[:i])
            if outer_end >= end and (outer_end > start or (end == start and (outer_start == start or not begun)))
        ]
        found.append(max(around, default=-1))
    return found


def longest_path_length(graph: DependencyGraph) -> int:
    """Return the largest sum of lags along any path: all paths are tried."""
    following: dict[int, list[tuple[int, int]]] = {}
    for source, target, lag in edges_of(graph):
        following.setdefault(source, []).append((target, lag))

    def best_from(vertex: int) -> int:
        return max([0, *(lag + best_from(target) for target, lag in following.get(vertex, []))])

    return max((best_from(vertex) for vertex in range(graph.vertex_count)), default=0)


def edges_of(graph: DependencyGraph) -> list[tuple[int, int, int]]:
    """Return (source, target, lag) of every edge as Python integers."""
    edges = graph.edges
    return list(zip(edges.source.tolist(), edges.target.tolist(), edges.lag.tolist(), strict=True))


def edges_by_name(graph: DependencyGraph, kind: EdgeKind) -> list[tuple[str, str, int]]:
    """Return the edges of a kind as (source, target, lag in µs), vertices written as in ``a.start``, sorted."""

    def written(vertex: int) -> str:
        return f"{graph.names[graph.activities.name[vertex // 2]]}.{('start', 'end')[vertex % 2]}"

    return sorted(
        (written(source), written(target), lag // 1000)
        for (source, target, lag), each in zip(edges_of(graph), graph.edges.kind.tolist(), strict=True)
        if each == kind
    )


def allowed(graph: DependencyGraph, vertex: int) -> list[tuple[int, str]]:
    """Return (the moment it allows, kind) for each edge into a vertex."""
    time = graph.time.tolist()
    return [
        (time[source] + lag, EdgeKind(kind).label)
        for (source, target, lag), kind in zip(edges_of(graph), graph.edges.kind.tolist(), strict=True)
        if target == vertex
    ]


def cause(graph: DependencyGraph, work: int, pause_ns: int, kernel_pause_us: float) -> str:
    """Return why a stream stood still before a piece of work, from the definition in `idle_breakdown`."""
    edges = allowed(graph, 2 * work)
    if edges and "launch" in {kind for moment, kind in edges if moment == max(edges)[0]}:
        return "host_wait"
    acts = graph.activities
    call = int(acts.cause[work])
    if call >= 0 and acts.kind[call] == ActivityKind.LAUNCH:
        begin = int(acts.start[work]) - pause_ns
        if 2 * (min(int(acts.end[call]), int(acts.start[work])) - begin) > pause_ns:
            return "host_wait"
    return "kernel_wait" if pause_ns < 1000 * kernel_pause_us else "other"


def idle(graph: DependencyGraph, group: str, kernel_pause_us: float = 30) -> Counter[tuple[int, int, str]]:
    """Return the idle ns by (rank, stream, cause), or by (rank, -1, cause) where whole ranks are the group."""
    acts = graph.activities
    total: Counter[tuple[int, int, str]] = Counter()
    rows = [row for row in range(len(acts)) if acts.on_device[row]]
    keys = {row: (int(acts.rank[row]), graph.lanes[acts.lane[row]].stream if group == "stream" else -1) for row in rows}
    for key in set(keys.values()):
        mine = sorted((int(acts.start[row]), row) for row in rows if keys[row] == key)
        free = mine[0][0]
        for start, row in mine:
            if start > free:
                total[(*key, cause(graph, row, start - free, kernel_pause_us))] += start - free
            free = max(free, int(acts.end[row]))
    return total
