"""Why streams stand still: by which edge of the graph held up the work that ended each pause."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.activities import Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.idle_cause import CAUSES, KERNEL_PAUSE_US, binding_kind, pause_cause

__all__ = ["idle_breakdown"]

_COLUMNS = {
    "rank": "int64", "device": "int64", "stream": "int64", "cause": "str", "idle_us": "float64", "count": "int64",
    "mean_us": "float64", "max_us": "float64", "share_percent": "float64",
}  # fmt: skip


def idle_breakdown(graph: DependencyGraph, *, kernel_pause_us: float = KERNEL_PAUSE_US) -> pd.DataFrame:
    """Return how long each stream stood still between its first and last work, by cause.

    A pause lasts from the end of all earlier work of the stream to the start of the next. Its cause is the binding
    edge into that next work, the one that allowed it last:

    - ``host_wait``: the LAUNCH edge, or the launch call was still under way for most of the pause; the host had not
      enqueued the work early enough.
    - ``kernel_wait``: another edge or none, and the pause is short: the device's own pause between two kernels.
    - ``other``: neither explains the pause: a wait for another stream or an event, a late collective, a resource.

    Args:
        graph: the job.
        kernel_pause_us: what a pause between two queued kernels lasts at most, µs.

    Returns:
        One row per rank, stream and cause, in that order, all three causes for each stream with work: ``rank``,
        ``device``, ``stream`` (int64), ``cause`` (str), ``idle_us`` (float64), ``count`` (int64, pauses), ``mean_us``,
        ``max_us`` (float64, 0 without pauses), ``share_percent`` (float64: of the stream's idle time, NaN without).

    Example:
        >>> import htagraph as hg
        >>> sorted(set(hg.idle_breakdown(hg.load("data/demo"))["cause"]))
        ['host_wait', 'kernel_wait', 'other']

    Source: HTA's idle time breakdown, whose ``host_wait`` asks only whether the launch began after the pause did.
    """
    rows = []
    acts = graph.activities
    binding = binding_kind(graph)
    for lane in sorted(acts.by_stream(), key=lambda lane: _place(graph.lanes[acts.lane[lane[0]]])):
        rows += _lane_rows(graph, lane, binding, kernel_pause_us)
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)


def _place(lane: Lane) -> tuple[int, int, int]:
    return lane.rank, lane.device, lane.stream


def _lane_rows(
    graph: DependencyGraph, lane: np.ndarray, binding: np.ndarray, kernel_pause_us: float
) -> list[tuple[object, ...]]:
    acts = graph.activities
    free = np.maximum.accumulate(acts.end[lane])[:-1]
    pause = np.maximum(0, acts.start[lane[1:]] - free)
    cause = pause_cause(graph, binding, lane[1:], free, kernel_pause_us)
    where = graph.lanes[acts.lane[lane[0]]]
    idle = int(pause.sum())
    rows: list[tuple[object, ...]] = []
    for word in CAUSES:
        mine = pause[(cause == word) & (pause > 0)]
        total = int(mine.sum())
        rows.append((
            where.rank, where.device, where.stream, word, total / 1000, len(mine),
            total / len(mine) / 1000 if len(mine) else 0.0, int(mine.max(initial=0)) / 1000,
            100 * total / idle if idle else float("nan"),
        ))  # fmt: skip
    return rows
