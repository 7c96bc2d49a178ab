"""How much memory each device needed at most, and what ran then."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.memory_events import memory_events

__all__ = ["peaks"]

_COLUMNS = {
    "rank": "int64", "device": "str", "peak_bytes": "int64", "peak_us": "float64", "reserved_bytes": "int64",
    "most_reserved_bytes": "int64", "first_bytes": "int64", "last_bytes": "int64", "allocations": "int64",
    "allocated_bytes": "int64", "activity": "int64", "name": "str",
}  # fmt: skip


def peaks(graph: DependencyGraph) -> pd.DataFrame:
    """Return the moment of the most memory in use on each device.

    Args:
        graph: the job.

    Returns:
        One row per rank and device that has memory events: ``rank`` (int64), ``device`` (str), ``peak_bytes`` (int64:
        the most in use at once), ``peak_us`` (float64: when first so much was, µs since the job's first activity),
        ``reserved_bytes`` (int64: held by the allocator then; what is more than the peak lies idle),
        ``most_reserved_bytes`` (int64), ``first_bytes`` and ``last_bytes`` (int64: in use before the first event and
        after the last; more at the end hints at a leak), ``allocations`` (int64: how many), ``allocated_bytes``
        (int64: their sizes summed), ``activity`` (int64: what reached the peak, -1 for none), ``name`` (str).

    Example:
        >>> import htagraph as hg
        >>> hg.memory.peaks(hg.load("data/demo"))["peak_bytes"].tolist()
        []

    Source: torch.profiler's ``[memory]`` events; HTA does not read them.
    """
    events = memory_events(graph)
    rows = []
    for (rank, device), mine in events.groupby(["rank", "device"], sort=False):
        peak = mine.iloc[int(np.argmax(mine["allocated_bytes"]))]
        first, grown = mine.iloc[0], mine["delta_bytes"].where(mine["delta_bytes"] > 0, 0)
        rows.append((
            rank, device, peak["allocated_bytes"], peak["time_us"], peak["reserved_bytes"],
            mine["reserved_bytes"].max(), first["allocated_bytes"] - first["delta_bytes"],
            mine["allocated_bytes"].iloc[-1], (mine["delta_bytes"] > 0).sum(), grown.sum(), peak["activity"],
            peak["name"],
        ))  # fmt: skip
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
