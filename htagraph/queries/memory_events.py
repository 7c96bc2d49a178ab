"""The ``[memory]`` events of a graph's traces as one table."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import FRAMES
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tree import innermost_around
from htagraph.trace.columns import Trace

__all__ = ["memory_events"]

_DEVICES: Final = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuse1"}
"""Names by the numbers of PyTorch's c10::DeviceType, which the events record."""
_ABSENT = -1
"""Bytes of an argument that an event lacks; no recorded total is negative."""
_COLUMNS = {
    "rank": "int64", "device": "str", "time_us": "float64", "delta_bytes": "int64", "allocated_bytes": "int64",
    "reserved_bytes": "int64", "address": "uint64", "activity": "int64", "name": "str",
}  # fmt: skip


def memory_events(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per allocation or free, by rank, device and time; documented at `htagraph.memory.timeline`."""
    parts = [_of_rank(graph, rank, trace) for rank, trace in sorted(graph.traces.items()) if len(trace.instants)]
    empty = pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in _COLUMNS.items()})
    return pd.concat(parts, ignore_index=True) if parts else empty


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
    moment = _on_common_clock(graph, rank, start)
    return pd.DataFrame(
        {
            "rank": rank,
            "device": pd.array(labels, dtype="str").take(np.cumsum(first) - 1),
            "time_us": (moment - graph.origin_ns) / 1000,
            "delta_bytes": delta,
            "allocated_bytes": np.where(recorded_total == _ABSENT, _summed(delta, first), recorded_total),
            "reserved_bytes": np.maximum(table.arg("total_reserved")[order], 0),
            "address": table.arg("addr")[order],
            "activity": activity,
            "name": [graph.names[graph.activities.name[row]] if row >= 0 else "" for row in activity],
        }
    ).astype(_COLUMNS)


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


def _on_common_clock(graph: DependencyGraph, rank: int, time: Array) -> Array:
    clock = next((each for each in graph.clocks if each.rank == rank), None)
    return time if clock is None or not (clock.offset_ns or clock.drift_ppm) else clock.common(time)
