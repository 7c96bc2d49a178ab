"""Counters over time: works queued on each stream, and bandwidth of copies. One row per change, constant in between."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.enclosing import launched
from htagraph.graph import DependencyGraph
from htagraph.kinds import ActivityKind
from htagraph.naming import copy_kind

__all__ = ["STATISTICS", "bandwidth_changes", "queue_changes", "statistics"]

Array: TypeAlias = npt.NDArray[Any]

STATISTICS = ("count", "mean", "std", "min", "p25", "median", "p75", "max")
"""Names of what `statistics` returns: all float64 but the count."""

_QUEUE = {
    "rank": "int64", "device": "int64", "stream": "int64", "time_us": "float64", "queue_length": "int64",
    "activity": "int64",
}  # fmt: skip
_BANDWIDTH = {
    "rank": "int64", "copy": "str", "time_us": "float64", "bandwidth_gb_s": "float64", "activity": "int64"
}  # fmt: skip
_MICROSECOND = 1000


def queue_changes(graph: DependencyGraph) -> pd.DataFrame:
    """Return the queue length of each stream; documented at `htagraph.queue_length`."""
    acts = graph.activities
    call, work = launched(graph)
    start, lane = graph.time[2 * work], acts.lane[work].astype(np.int64)
    queued = np.minimum(graph.time[2 * call], start)
    order = np.lexsort((queued, lane, call))
    again = (np.diff(call[order]) == 0) & (np.diff(lane[order]) == 0) & (np.diff(queued[order]) == 0)
    first = np.append(
        np.ones(min(1, len(order)), np.bool_), ~again
    )  # works enqueued at once on a stream are one change
    calls = order[first]
    change = np.concatenate((np.diff(np.append(np.flatnonzero(first), len(order))), np.full(len(work), -1)))
    lane, time = np.concatenate((lane[calls], lane)), np.concatenate((queued[calls], start))
    activity = np.concatenate((call[calls], work))
    places = np.array([(each.rank, each.device, each.stream) for each in graph.lanes], np.int64).reshape(-1, 3)
    rank, device, stream = places[lane].T
    order = np.lexsort((activity, -change, time, lane, stream, device, rank))
    return pd.DataFrame({
        "rank": rank[order], "device": device[order], "stream": stream[order],
        "time_us": (time[order] - graph.origin_ns) / 1000,
        "queue_length": np.cumsum(change[order]),  # over all streams: each ends with an empty queue
        "activity": activity[order],
    }).astype(_QUEUE)  # fmt: skip


def bandwidth_changes(graph: DependencyGraph) -> pd.DataFrame:
    """Return the bandwidth of each kind of copy; documented at `htagraph.memory_bandwidth`."""
    acts = graph.activities
    work = np.flatnonzero(acts.kind == ActivityKind.MEMORY)
    words = {name: copy_kind(graph.names[name]) for name in np.unique(acts.name[work]).tolist()}
    kinds = sorted(set(words.values()))
    kind = np.array([kinds.index(words[name]) for name in acts.name[work].tolist()], np.int64)
    duration = np.where(acts.duration[work] > 0, acts.duration[work], _MICROSECOND)
    recorded, size = acts.arg("bandwidth_gb_s")[work].astype(np.float64), acts.arg("bytes")[work]
    bandwidth = np.where(recorded >= 0, recorded, np.maximum(size, 0) / duration)
    start = graph.time[2 * work]
    time, change = np.concatenate((start, start + duration)), np.concatenate((bandwidth, -bandwidth))
    begins = np.repeat([1, -1], len(work))
    work, kind = np.tile(work, 2), np.tile(kind, 2)
    rank = acts.rank[work].astype(np.int64)
    order = np.lexsort((work, begins, time, kind, rank))
    group = rank[order] * max(1, len(kinds)) + kind[order]
    running = np.cumsum(begins[order])  # each kind of each rank ends with none
    total = pd.Series(change[order]).groupby(group).cumsum().to_numpy()
    return pd.DataFrame({
        "rank": rank[order], "copy": np.array([*kinds, ""], object)[kind[order]],
        "time_us": (time[order] - graph.origin_ns) / 1000,
        "bandwidth_gb_s": np.where(running > 0, np.maximum(total, 0), 0.0),  # what adding and taking away leaves over
        "activity": work[order],
    }).astype(_BANDWIDTH)  # fmt: skip


def statistics(values: pd.Series[Any], keys: list[pd.Series[Any]]) -> pd.DataFrame:
    """Return the `STATISTICS` of each group of values, by the keys in ascending order.

    Example:
        >>> statistics(pd.Series([1.0, 3.0]), [pd.Series([7, 7], name="stream")]).iloc[0].tolist()
        [2.0, 2.0, 1.4142135623730951, 1.0, 1.5, 2.0, 2.5, 3.0]
    """
    groups = values.groupby(keys)
    quarters = (groups.quantile(share) for share in (0.25, 0.5, 0.75))
    columns = (groups.count(), groups.mean(), groups.std(), groups.min(), *quarters, groups.max())
    table = pd.concat(columns, axis=1, keys=STATISTICS)
    return table.astype({"count": "int64"} | dict.fromkeys(STATISTICS[1:], "float64"))
