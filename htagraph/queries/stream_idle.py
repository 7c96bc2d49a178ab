"""The pauses of each stream: the kernels before and after, when the stream was free, and the launch."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["stream_pauses"]

_PLACE = ("device", "stream")
"""Fields of a lane that identify a stream within a rank, and their columns."""


def stream_pauses(graph: DependencyGraph) -> pd.DataFrame:
    """Return every kernel or copy that follows another on its stream, by rank, device, stream and time.

    Returns:
        ``rank``, ``device``, ``stream``, ``before`` and ``after`` (activities: the kernel or copy that started before,
        and this one), ``launch`` (the call that enqueued it, -1 if unknown), ``free_ns`` (when all earlier work of the
        stream had ended, ns on the rank's own clock), ``pause_ns`` (from then to its start, 0 where they overlap); all
        int64.
    """
    acts = graph.activities
    streams = [rows for rows in acts.by_stream() if len(rows) > 1]
    before, after = (_joined([rows[part] for rows in streams]) for part in (slice(-1), slice(1, None)))
    free = _joined([np.maximum.accumulate(acts.end[rows])[:-1] for rows in streams])
    lane = acts.lane[after]
    devices, numbers = (np.array([getattr(each, word) for each in graph.lanes], np.int64) for word in _PLACE)
    table = pd.DataFrame({
        "rank": acts.rank[after].astype(np.int64), "device": devices[lane], "stream": numbers[lane], "before": before,
        "after": after, "launch": acts.cause[after].astype(np.int64), "free_ns": free,
        "pause_ns": np.maximum(0, acts.start[after] - free),
    })  # fmt: skip
    return table.sort_values(["rank", *_PLACE], kind="stable", ignore_index=True)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
