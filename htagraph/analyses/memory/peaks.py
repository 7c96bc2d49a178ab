"""Peak memory of each device, and what ran then."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import memory_events

__all__ = ["peaks"]

TABLE = Table(
    "Peak memory in use",
    Col("rank", "int64"),
    Col("device", "str"),
    Col("peak_bytes", "int64", "the most in use at once"),
    Col("peak_us", doc="when first reached, µs since the job's first activity"),
    Col("reserved_bytes", "int64", "held by the allocator at the peak; what exceeds ``peak_bytes`` is unused"),
    Col("most_reserved_bytes", "int64"),
    Col(
        "first_bytes last_bytes",
        "int64",
        "in use before the first event and after the last; a larger last value hints at a leak",
    ),
    Col("allocations", "int64", "number of allocations"),
    Col("allocated_bytes", "int64", "summed sizes of all allocations"),
    Col("activity", "int64", "number of the activity that reached the peak; -1 for none"),
    Col("name", "str"),
)


@described(TABLE)
def peaks(graph: DependencyGraph) -> pd.DataFrame:
    """Return the moment at which each device had most memory in use.

    Args:
        graph: the job.

    Returns:
        One row per rank and device that has memory events: {columns}.

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
        first, grown = of_device.iloc[0], of_device["delta_bytes"].clip(lower=0)
        rows.append((
            rank, device, peak["allocated_bytes"], peak["time_us"], peak["reserved_bytes"],
            of_device["reserved_bytes"].max(), first["allocated_bytes"] - first["delta_bytes"],
            of_device["allocated_bytes"].iloc[-1], (of_device["delta_bytes"] > 0).sum(), grown.sum(), peak["activity"],
            peak["name"],
        ))  # fmt: skip
    return TABLE.frame(rows)
