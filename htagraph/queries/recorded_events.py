"""Recorded events that are no activities: memory events, annotations on device streams, and CUPTI counter ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, spread
from htagraph.core.kinds import FRAMES, ActivityKind
from htagraph.core.naming import COUNTER_RANGE, DEVICE_ANNOTATION, is_kernel_launch, names_that
from htagraph.core.tables import Col, Table
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tree import innermost_around
from htagraph.trace.columns import Trace
from htagraph.trace.readers import reader_of

__all__ = ["MEMORY_EVENTS", "counter_ranges", "device_annotations", "memory_events", "narrowest", "operators_around"]

_DEVICES: Final = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuse1"}
"""Names by the numbers of PyTorch's c10::DeviceType, which the events record."""
MEMORY_EVENTS = Table(
    "Memory over time",
    Col("rank", "int64"),
    Col("device", "str", '``"cpu"``, ``"cuda:0"``'),
    Col("time_us", doc="µs since the job's first activity"),
    Col("delta_bytes", "int64", "allocated, or freed if negative"),
    Col("allocated_bytes reserved_bytes", "int64", "in use, and held by the allocator, afterwards"),
    Col("address", "uint64"),
    Col(
        "activity",
        "int64",
        "the innermost operator, annotation, step or Python frame that ran on the thread, -1 for none",
    ),
    Col("name", "str", "name of that activity; empty for none"),
)
_MAX_PAIRS = 1 << 22
"""How many pairs of intervals are compared at once. Chosen for memory: a pair takes some 25 bytes, so a batch about 100
MB. Doubled, memory doubles; results do not change."""


def memory_events(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per allocation or free, by rank, device and time; documented at `htagraph.memory.timeline`."""
    parts = [_of_rank(graph, rank, trace) for rank, trace in sorted(graph.traces.items()) if len(trace.instants)]
    return pd.concat(parts, ignore_index=True) if parts else MEMORY_EVENTS.frame()


def device_annotations(graph: DependencyGraph, rank: int) -> pd.DataFrame:
    """Return the user annotations on a rank's streams that overlap the time from its first to its last device work.

    Annotations of steps that were not loaded are before or after that time and are left out.

    Returns:
        ``name`` (str), ``lane`` (int64: the number of their stream's lane, -1 where nothing ran on it), ``start`` and
        ``end`` (int64, ns on the rank's own clock), as in the file.
    """
    kinds = {"name": "str", "lane": "int64", "start": "int64", "end": "int64"}
    trace, acts, of_rank = graph.traces.get(rank), graph.activities, graph.activities.of_rank(rank)
    device = of_rank.start + np.flatnonzero(acts.on_device[of_rank])
    if trace is None or not len(device):
        return pd.DataFrame(columns=list(kinds)).astype(kinds)
    events = trace.events
    begin, over = acts.start[device].min(), acts.end[device].max()
    rows = np.flatnonzero(trace.in_categories(DEVICE_ANNOTATION) & (events.start < over) & (events.end > begin))
    lanes = {
        (str(lane.device), str(lane.stream)): number for number, lane in enumerate(graph.lanes) if lane.rank == rank
    }
    lane_of = np.array([lanes.get((str(pid), str(tid)), -1) for pid, tid in trace.lanes] or [-1], np.int64)
    return pd.DataFrame({
        "name": np.array([*trace.names, ""], object)[events.name[rows]], "lane": lane_of[events.lane[rows]],
        "start": events.start[rows], "end": events.end[rows],
    }).astype(kinds)  # fmt: skip


def narrowest(start: Array, end: Array, over_start: Array, over_end: Array) -> npt.NDArray[np.int64]:
    """Return, for each interval, the index of the shortest other interval that overlaps it (the last on ties), or -1.

    Intervals are half-open. An empty interval counts as the ns at which it starts; empty others overlap nothing.

    Example:
        >>> import numpy as np
        >>> narrowest(np.array([2, 9]), np.array([5, 9]), np.array([0, 4]), np.array([10, 8])).tolist()
        [1, 0]
    """
    shortest = np.full(len(start), -1, np.int64)
    end = np.maximum(end, start + 1)
    over = np.flatnonzero(over_end > over_start)
    longest_first = np.argsort((over_start - over_end)[over], kind="stable")  # a shorter one overwrites longer ones
    over = over[longest_first]
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])  # intervals before the first that reaches far enough end too early
    first = np.searchsorted(reach, over_start[over], side="right")
    count = np.maximum(0, np.searchsorted(start[order], over_end[over], side="left") - first)
    for some in _batches(count):
        owner, at = spread(first[some], first[some] + count[some])
        inner, outer = order[at], over[some][owner]
        meets = end[inner] > over_start[outer]
        shortest[inner[meets]] = outer[meets]
    return shortest


def counter_ranges(graph: DependencyGraph, rank: int) -> pd.DataFrame:
    """Return a rank's counter ranges in the order of time, each with the launch of its kernel.

    CUPTI's range profiler runs one kernel at a time, so the n-th range belongs to the n-th launch. Where the numbers of
    launches and ranges differ, no range has a launch.

    Returns:
        ``range`` (int64: position in the file's events), ``kernel`` (str), ``launch`` (int64: activity, -1 for none),
        then one column (object) per counter.
    """
    trace = graph.traces.get(rank)
    table = pd.DataFrame({"range": pd.Series(dtype="int64"), "kernel": pd.Series(dtype="str"), "launch": ()})
    if trace is None or not trace.in_categories(COUNTER_RANGE).any():
        return table.astype({"launch": "int64"})
    events = trace.events.take(trace.in_categories(COUNTER_RANGE))
    order = np.argsort(events.start, kind="stable")
    launches = _launches(graph, rank)
    launch = launches if len(launches) == len(events) else np.full(len(events), -1, np.int64)
    counters = reader_of(trace).category_arguments(trace.unchanged_path(), COUNTER_RANGE).reindex(events.index[order])
    kernel = pd.Series([trace.names[name] for name in events.name[order]], dtype="str")
    table = pd.DataFrame({"range": events.index[order].astype(np.int64), "kernel": kernel, "launch": launch})
    return pd.concat([table, counters.reset_index(drop=True)], axis=1)


def operators_around(graph: DependencyGraph, activities: npt.ArrayLike) -> list[list[int]]:
    """Return the operators that enclose each activity on its thread, itself included, outermost first; none for -1."""
    acts = graph.activities
    stacks: list[list[int]] = []
    known: dict[int, list[int]] = {-1: []}  # activities share what encloses them: each is visited once
    for activity in np.asarray(activities, np.int64).tolist():
        unknown, at = [], activity
        while at not in known:
            unknown.append(at)
            at = int(acts.parent[at])
        around = known[at]
        for inner in reversed(unknown):
            around = [*around, inner] if acts.kind[inner] == ActivityKind.OP else around
            known[inner] = around
        stacks.append(around)
    return stacks


def _of_rank(graph: DependencyGraph, rank: int, trace: Trace) -> pd.DataFrame:
    table = trace.instants
    kind, number = table.arg("device_type"), table.arg("device_id")
    number = np.where(kind == 0, -1, number)
    order = np.lexsort((table.index, table.start, number, kind))
    kind, number, start = kind[order], number[order], table.start[order]
    first = np.concatenate(([True], (np.diff(kind) != 0) | (np.diff(number) != 0)))
    delta, recorded_total = table.arg("alloc_bytes")[order], table.arg("total_allocated")[order]
    activity = _running(graph, rank, trace, order)
    labels = [_device(*each) for each in zip(kind[first].tolist(), number[first].tolist(), strict=True)]
    moment = next((clock for clock in graph.clocks if clock.rank == rank), Clock(rank)).common(start)
    return MEMORY_EVENTS.frame({
        "rank": rank,
        "device": pd.array(labels, dtype="str").take(np.cumsum(first) - 1),
        "time_us": (moment - graph.origin_ns) / 1000,
        "delta_bytes": delta,
        "allocated_bytes": np.where(recorded_total < 0, _summed(delta, first), recorded_total),
        "reserved_bytes": np.maximum(table.arg("total_reserved")[order], 0),
        "address": table.arg("addr")[order],
        "activity": activity,
        "name": [graph.names[graph.activities.name[row]] if row >= 0 else "" for row in activity],
    })  # fmt: skip


def _device(kind: int, number: int) -> str:
    label = _DEVICES.get(kind, f"device type {kind}")
    return label if number < 0 else f"{label}:{number}"


def _summed(delta: Array, first: Array) -> Array:
    """Return the running sum of bytes on each device, which profilers before 2022 do not record."""
    total = np.cumsum(delta)
    begins = np.flatnonzero(first)
    before = np.concatenate(([0], total))[begins]
    return total - np.repeat(before, np.diff(np.append(begins, len(delta))))


def _running(graph: DependencyGraph, rank: int, trace: Trace, order: Array) -> npt.NDArray[np.int64]:
    """Return the innermost operator, annotation, step or Python frame on the thread of each event."""
    acts, table = graph.activities, trace.instants
    of_rank = acts.of_rank(rank)
    threads = {(lane.pid, lane.tid): i for i, lane in enumerate(graph.lanes) if lane.rank == rank and lane.device < 0}
    lane, start = table.lane[order], table.start[order]
    running = np.full(len(order), -1, np.int64)
    for in_file in np.unique(lane).tolist():
        on_lane = threads.get(trace.lanes[in_file], -1)
        among = of_rank.start + np.flatnonzero((acts.lane[of_rank] == on_lane) & np.isin(acts.kind[of_rank], FRAMES))
        rows = lane == in_file
        running[rows] = innermost_around(acts, among, start[rows], start[rows])
    return running


def _batches(count: Array) -> Iterator[slice]:
    """Yield stretches of rows with at most `_MAX_PAIRS` pairs together, or of one row."""
    total = np.cumsum(count)
    first = 0
    while first < len(count):
        most = total[first] - count[first] + _MAX_PAIRS
        last = max(first + 1, int(np.searchsorted(total, most, side="right")))
        yield slice(first, last)
        first = last


def _launches(graph: DependencyGraph, rank: int) -> npt.NDArray[np.int64]:
    """Return the kernel launches of a rank in the order of time, without driver calls inside runtime calls."""
    acts = graph.activities
    of_kernel = names_that(is_kernel_launch, graph.names)
    wanted = of_kernel[acts.name] & (acts.kind == ActivityKind.LAUNCH)
    rows = np.arange(len(acts))[acts.of_rank(rank)]
    parent = acts.parent[rows]
    rows = rows[wanted[rows] & ~((parent >= 0) & wanted[parent])]
    return rows[np.argsort(acts.start[rows], kind="stable")]
