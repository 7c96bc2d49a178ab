"""Queues of launches: how long they were, which launches waited for room, and how long devices wait for hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, Ints
from htagraph.core.kinds import EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import launched
from htagraph.queries.waited_for import HOST, waited_for

__all__ = ["QueueUse", "calls_at_full_queues", "host_wait_percent", "queue_use"]


@dataclass(frozen=True)
class QueueUse:
    """How long the queues of a job were, in launches: all kernels of a CUDA graph are one."""

    rank: int
    """The rank of the longest queue."""
    stream: int
    """The stream of the longest queue."""
    most: int
    """How many launches the longest queue held at most; 0 where nothing was launched."""
    full_us: float
    """How long that queue held as many launches as count as full, or more."""
    blocked: int
    """How many launch calls waited for room in a queue."""
    blocked_us: float
    """How long these calls took in all."""


def queue_use(graph: DependencyGraph, full: float) -> QueueUse:
    """Return how long the queues of a job were, and which launch calls waited for room in one.

    Args:
        graph: the job.
        full: the number of launches at which a queue counts as full.

    Example:
        >>> import htagraph as hg
        >>> use = queue_use(hg.load("data/demo"), 1024)
        >>> use.most, use.blocked
        (171, 0)
    """
    entries = _entries(graph)
    lane = entries["lane"].to_numpy()
    call = entries["call"].to_numpy()
    start = entries["start"].to_numpy()
    calls = calls_at_full_queues(graph)
    blocked_us = float(graph.activities.duration[calls].sum()) / 1000
    if not len(lane):
        return QueueUse(0, 0, 0, 0.0, 0, 0.0)
    queued = np.minimum(graph.time[2 * call], start)
    time = np.concatenate((queued, start))
    change = np.repeat([1, -1], len(lane))
    lanes = np.tile(lane, 2)
    order = np.lexsort((-change, time, lanes))
    length = np.cumsum(change[order])  # over all streams at once: each queue ends empty
    longest = int(length.argmax())
    longest_lane = int(lanes[order][longest])
    of_lane = lanes[order] == longest_lane
    place = graph.lanes[longest_lane]
    full_us = _time_at(length[of_lane], time[order][of_lane], full) / 1000
    return QueueUse(place.rank, place.stream, int(length[longest]), full_us, len(calls), blocked_us)


def calls_at_full_queues(graph: DependencyGraph) -> Ints:
    """Return the launch calls that waited for room in a queue, ascending."""
    edges = graph.edges
    waits = edges.kind == EdgeKind.QUEUE_FULL
    call, _ = launched(graph)
    return np.intersect1d(edges.target[waits].astype(np.int64) >> 1, call)


def host_wait_percent(graph: DependencyGraph) -> float:
    """Return how long devices wait for their hosts, percent of their time, as `waited_for` has it; NaN without devices.

    Example:
        >>> import htagraph as hg
        >>> 0 < host_wait_percent(hg.load("data/demo")) < 1
        True
    """
    devices = len(graph.device_pauses.places)
    waits = waited_for(graph)
    by_host = waits.loc[waits["waited_for"] == HOST, "share_percent"].sum()
    return float(by_host) / devices if devices else float("nan")


def _entries(graph: DependencyGraph) -> pd.DataFrame:
    """Return a row per call and stream: ``lane``, ``call``, ``start`` (common time at which its first work starts)."""
    acts = graph.activities
    call, work = launched(graph)
    table = pd.DataFrame(
        {
            "lane": acts.lane[work].astype(np.int64),
            "call": call,
            "start": graph.time[2 * work],
        }
    )
    return table.groupby(["lane", "call"], as_index=False).agg(start=("start", "min"))


def _time_at(length: Array, time: Array, full: float) -> int:
    """Return how long a queue held as many launches as count as full, ns."""
    lasts = np.diff(time, append=time[-1:])
    return int(lasts[length >= full].sum())
