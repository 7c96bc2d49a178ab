"""Every allocation and free that the profiler recorded."""

from __future__ import annotations

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import memory_events

__all__ = ["timeline"]


def timeline(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per allocation or free of each device's memory, in the order of time.

    Traces have them where the profiler ran with ``profile_memory=True``.

    Args:
        graph: the job.

    Returns:
        By rank, device and time: ``rank`` (int64), ``device`` (str: ``"cpu"``, ``"cuda:0"``), ``time_us`` (float64, µs
        since the job's first activity), ``delta_bytes`` (int64: allocated, or freed if negative), ``allocated_bytes``,
        ``reserved_bytes`` (int64: in use, and held by the allocator, afterwards), ``address`` (uint64), ``activity``
        (int64: the innermost operator, annotation, step or Python frame that ran on the thread, -1 for none), ``name``
        (str: its name, empty for none).

    Example:
        >>> import htagraph as hg
        >>> len(hg.memory.timeline(hg.load("data/demo")))
        0

    Source: torch.profiler's ``[memory]`` events; HTA does not read them.
    """
    return memory_events(graph)
