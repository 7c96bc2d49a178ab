"""Counters over time (queue length of each stream, bandwidth of copies): a row per change, constant in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import LAUNCHES, ActivityKind, of_kinds
from htagraph.core.naming import copy_kind
from htagraph.core.statistics import described
from htagraph.core.tables import Col, Table
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["BANDWIDTH", "QUEUE", "bandwidth_changes", "distribution", "lasting_us", "launched", "queue_changes"]

QUEUE = Table(
    "Queue length over time (kernels and copies)",
    Col("rank device stream", "int64"),
    Col("time_us", doc="on the common clock, since the job's first activity"),
    Col("queue_length", "int64", "from this moment until the stream's next row"),
    Col("activity", "int64", "the launch that enqueued, or the kernel that started"),
)
BANDWIDTH = Table(
    "Memory copy bandwidth over time",
    Col("rank", "int64"),
    Col("copy", "str", "``Memcpy HtoD``, ``Memcpy DtoH``, ``Memcpy DtoD``, …, ``Memset``, ``other``"),
    Col("time_us", doc="on the common clock, since the job's first activity"),
    Col("bandwidth_gb_s", doc="from this moment until the next row of the same kind"),
    Col("activity", "int64", "the copy that began or ended"),
)
_ZERO_COPY_NS = 1000
"""The duration that a copy recorded with duration 0 counts with, ns.

Source: HTA, whose memory bandwidth gives such copies 1 µs. Doubled, they have half the bandwidth for twice the time."""
_MAX_BANDWIDTH_GB_S = 1e9
"""Recorded bandwidths from this on are not believed, GB/s; bytes over duration counts instead.

Chosen: a thousand times and more beyond any memory, and small enough that float64 sums of bandwidths return to 0.
Doubled, nothing changes for bandwidths that a device can have."""


def launched(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (launch, device work) of all LAUNCH and GRAPH edges, by rank, start of the launch and of the work."""
    acts, edges = graph.activities, graph.edges
    pairs = np.flatnonzero(of_kinds(edges.kind, LAUNCHES))
    call, work = edges.source[pairs].astype(np.int64) >> 1, edges.target[pairs].astype(np.int64) >> 1
    order = np.lexsort((work, acts.start[work], call, acts.start[call], acts.rank[work]))
    return call[order], work[order]


def queue_changes(graph: DependencyGraph) -> pd.DataFrame:
    """Return the queue length of each stream; documented at `htagraph.queue_length`."""
    acts = graph.activities
    call, work = launched(graph)
    start, stream_of = graph.time[2 * work], acts.lane[work].astype(np.int64)
    queued = np.minimum(graph.time[2 * call], start)
    pairs, sizes = _enqueued_at_once(call, stream_of, queued)
    lane, time = np.concatenate((stream_of[pairs], stream_of)), np.concatenate((queued[pairs], start))
    activity, change = np.concatenate((call[pairs], work)), np.concatenate((sizes, np.full(len(work), -1)))
    places = np.array([(each.rank, each.device, each.stream) for each in graph.lanes], np.int64).reshape(-1, 3)
    rank, device, stream = places[lane].T
    order = np.lexsort((activity, -change, time, lane, stream, device, rank))
    return QUEUE.frame({
        "rank": rank[order], "device": device[order], "stream": stream[order],
        "time_us": (time[order] - graph.origin_ns) / 1000,
        "queue_length": np.cumsum(change[order]),  # over all streams at once: each queue ends empty
        "activity": activity[order],
    })  # fmt: skip


def bandwidth_changes(graph: DependencyGraph) -> pd.DataFrame:
    """Return the bandwidth of each kind of copy; documented at `htagraph.memory_bandwidth`."""
    acts = graph.activities
    work = np.flatnonzero(acts.kind == ActivityKind.MEMORY)
    words = {name: copy_kind(graph.names[name]) for name in np.unique(acts.name[work]).tolist()}
    kinds = sorted(set(words.values()))
    kind = np.array([kinds.index(words[name]) for name in acts.name[work].tolist()], np.int64)
    duration, bandwidth = _moved(graph, work)
    start = graph.time[2 * work]
    time, change = np.concatenate((start, start + duration)), np.concatenate((bandwidth, -bandwidth))
    begins = np.repeat([1, -1], len(work))
    work, kind = np.tile(work, 2), np.tile(kind, 2)
    rank = acts.rank[work].astype(np.int64)
    order = np.lexsort((work, begins, time, kind, rank))
    group = rank[order] * max(1, len(kinds)) + kind[order]
    running = np.cumsum(begins[order])  # copies under way; none at the end of each kind and rank
    total = pd.Series(change[order]).groupby(group).cumsum().to_numpy()
    return BANDWIDTH.frame({
        "rank": rank[order], "copy": np.array([*kinds, ""], object)[kind[order]],
        "time_us": (time[order] - graph.origin_ns) / 1000,
        "bandwidth_gb_s": np.where(running > 0, np.maximum(total, 0), 0.0),  # without rounding errors of the sums
        "activity": work[order],
    })  # fmt: skip


def lasting_us(changes: pd.DataFrame, keys: list[str]) -> pd.Series[float]:
    """Return how long the value of each row lasts, µs: until the next row of the same `keys`; 0 for the last row."""
    return (-changes.groupby(keys)["time_us"].diff(-1)).fillna(0.0)


def distribution(values: pd.Series[Any], keys: list[pd.Series[Any]]) -> pd.DataFrame:
    """Return the `htagraph.core.statistics.DISTRIBUTION` of each group of values, by the keys in ascending order.

    Example:
        >>> distribution(pd.Series([1.0, 3.0]), [pd.Series([7, 7], name="stream")]).iloc[0].tolist()
        [2.0, 2.0, 1.4142135623730951, 1.0, 1.5, 2.0, 2.5, 3.0]
    """
    groups = values.groupby(keys)
    return pd.DataFrame(described(values.to_numpy(), groups.ngroup().to_numpy(), groups.ngroups), groups.size().index)


def _enqueued_at_once(call: Array, lane: Array, queued: Array) -> tuple[Array, Array]:
    """Return (the first of the kernels that a call enqueues on a lane at one moment, how many they are)."""
    order = np.lexsort((queued, lane, call))
    same = (np.diff(call[order]) == 0) & (np.diff(lane[order]) == 0) & (np.diff(queued[order]) == 0)
    first = np.flatnonzero(np.concatenate((np.ones(min(1, len(order)), np.bool_), ~same)))
    return order[first], np.diff(np.append(first, len(order)))


def _moved(graph: DependencyGraph, work: Array) -> tuple[Array, Array]:
    """Return (the durations of copies and memory sets, ns; their bandwidths, GB/s, that is, bytes per ns)."""
    acts = graph.activities
    duration = np.where(acts.duration[work] > 0, acts.duration[work], _ZERO_COPY_NS)
    recorded, size = acts.arg("bandwidth_gb_s")[work].astype(np.float64), acts.arg("bytes")[work]
    credible = (recorded >= 0) & (recorded < _MAX_BANDWIDTH_GB_S)
    return duration, np.where(credible, recorded, np.maximum(size, 0) / duration)
