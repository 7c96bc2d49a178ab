"""The bandwidth of copies and sets of memory, as a step function of time."""

from __future__ import annotations

import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import bandwidth_changes

__all__ = ["memory_bandwidth"]


def memory_bandwidth(graph: DependencyGraph) -> pd.DataFrame:
    """Return the summed bandwidth of all copies and sets of a kind under way on a rank, at each moment it changed.

    Each copy has its recorded bandwidth, else its bytes over its duration (0 where neither is known), from its start to
    its end; one recorded without duration lasts 1 µs. Of changes at one moment the ends come first.

    Args:
        graph: the job.

    Returns:
        One row per change, by rank, kind of copy and time: ``rank`` (int64), ``copy`` (str: ``Memcpy HtoD``,
        ``Memcpy DtoH``, ``Memcpy DtoD``, …, ``Memset``, ``other``), ``time_us`` (float64: on the common clock, since
        the job's first activity), ``bandwidth_gb_s`` (float64: GB/s from this moment until the next row of the kind),
        ``activity`` (int64: the copy that began or ended).

    Example:
        >>> import htagraph as hg
        >>> table = hg.memory_bandwidth(hg.load("data/demo"))
        >>> bool((table["bandwidth_gb_s"] >= 0).all())
        True

    Source: HTA's memory bandwidth time series.
    """
    return bandwidth_changes(graph)
