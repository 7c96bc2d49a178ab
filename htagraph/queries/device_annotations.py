"""User annotations on device streams: events that span the kernels launched in a region and are not work themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.naming import DEVICE_ANNOTATION
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["device_annotations", "narrowest"]

_MAX_PAIRS = 1 << 22
"""How many pairs of intervals are compared at once. Chosen for memory: a pair takes some 25 bytes, so a batch about 100
MB. Doubled, memory doubles; results do not change."""


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

    Args:
        start: the start of each interval.
        end: the end of each interval.
        over_start: the starts of the others.
        over_end: the ends of the others.

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
        before = np.cumsum(count[some]) - count[some]
        inner = order[np.arange(count[some].sum()) + np.repeat(first[some] - before, count[some])]
        outer = np.repeat(over[some], count[some])
        meets = end[inner] > over_start[outer]
        shortest[inner[meets]] = outer[meets]
    return shortest


def _batches(count: Array) -> Iterator[slice]:
    """Yield stretches of rows with at most `_MAX_PAIRS` pairs together, or of one row."""
    total = np.cumsum(count)
    first = 0
    while first < len(count):
        most = total[first] - count[first] + _MAX_PAIRS
        last = max(first + 1, int(np.searchsorted(total, most, side="right")))
        yield slice(first, last)
        first = last
