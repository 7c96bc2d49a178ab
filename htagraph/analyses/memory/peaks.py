"""Peak memory of each device, and what ran then."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import memory_events

__all__ = ["peaks"]

_COLUMNS = {
    "rank": "int64", "device": "str", "peak_bytes": "int64", "peak_us": "float64", "reserved_bytes": "int64",
    "most_reserved_bytes": "int64", "first_bytes": "int64", "last_bytes": "int64", "allocations": "int64",
    "allocated_bytes": "int64", "activity": "int64", "name": "str",
}  # fmt: skip


def peaks(graph: DependencyGraph) -> pd.DataFrame:
    """Return the moment at which each device had most memory in use.

    Args:
        graph: the job.

    Returns:
        One row per rank and device that has memory events: ``rank`` (int64), ``device`` (str), ``peak_bytes`` (int64:
        the most in use at once), ``peak_us`` (float64: when first reached, µs since the job's first activity),
        ``reserved_bytes`` (int64: held by the allocator then; the rest is unused),
        ``most_reserved_bytes`` (int64), ``first_bytes`` and ``last_bytes`` (int64: in use before the first event and
        after the last; more at the end hints at a leak), ``allocations`` (int64: how many), ``allocated_bytes``
        (int64: their sizes summed), ``activity`` (int64: the one that reached the peak, -1 for none), ``name`` (str).

    Example:
        >>> import htagraph as hg
        >>> hg.memory.peaks(hg.load("data/demo"))["peak_bytes"].tolist()
        []

    Source: torch.profiler's ``[memory]`` events; HTA does not read them.
    """
    events = memory_events(graph)
    rows = []
    for (rank, device), of_device in events.groupby(["rank", "device"], sort=False):
        peak = of_device.iloc[int(np.argmax(of_device["allocated_bytes"]))]
        first, grown = (
            of_device.iloc[0],
            of_device["delta_bytes"].where(of_device["delta_bytes"] > 0, 0),
        )
        rows.append((
            rank, device, peak["allocated_bytes"], peak["time_us"], peak["reserved_bytes"],
            of_device["reserved_bytes"].max(), first["allocated_bytes"] - first["delta_bytes"],
            of_device["allocated_bytes"].iloc[-1], (of_device["delta_bytes"] > 0).sum(), grown.sum(), peak["activity"],
            peak["name"],
        ))  # fmt: skip
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
