"""Every allocation and free that the profiler recorded."""

from __future__ import annotations

import pandas as pd

from htagraph.core.tables import described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import MEMORY_EVENTS, memory_events

__all__ = ["timeline"]

TABLE = MEMORY_EVENTS


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
