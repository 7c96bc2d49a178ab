"""Every allocation and free that the profiler recorded."""

from __future__ import annotations

import pandas as pd

from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import memory_events

__all__ = ["timeline"]

TABLE = Table(
    "Memory over time",
    Col("rank", "int64"),
    Col("device", "str", '``"cpu"``, ``"cuda:0"``'),
    Col("time_us", doc="µs since the job's first activity"),
    Col("delta_bytes", "int64", "allocated, or freed if negative"),
    Col("allocated_bytes reserved_bytes", "int64", "in use, and held by the allocator, afterwards"),
    Col("address", "uint64"),
    Col(
        "activity",
        "int64",
        "the innermost operator, annotation, step or Python frame that ran on the thread, -1 for none",
    ),
    Col("name", "str", "its name, empty for none"),
)


@described(TABLE)
def timeline(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per allocation or free of each device's memory, in the order of time.

    Traces have them where the profiler ran with ``profile_memory=True``.

    Args:
        graph: the job.

    Returns:
        By rank, device and time: {columns}.

    Example:
        >>> import htagraph as hg
        >>> len(hg.memory.timeline(hg.load("data/demo")))
        0

    Source: torch.profiler's ``[memory]`` events; HTA does not read them.
    """
    return memory_events(graph)
