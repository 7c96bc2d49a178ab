"""How much of each rank's communication is hidden behind computation."""

from __future__ import annotations

import pandas as pd

from htagraph.core.intervals import intersection, length
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.busy_time import work_of

__all__ = ["overlap"]


def overlap(graph: DependencyGraph) -> pd.DataFrame:
    """Return the share of each rank's communication time in which computation runs beside it.

    Both are unions over all streams (on a rank without device work, over host threads): time in which two collectives
    run at once counts once.

    Args:
        graph: the job.

    Returns:
        One row per rank: ``rank`` (int64), ``communication_us``, ``computation_us``, ``hidden_us`` (float64: both at
        once), ``overlap_percent`` (float64: 100 · hidden / communication, NaN without communication).

    Example:
        >>> import htagraph as hg
        >>> table = hg.overlap(hg.load("data/demo"))
        >>> bool((table["hidden_us"] <= table["communication_us"]).all())
        True

    Source: HTA's communication-computation overlap.
    """
    rows = []
    for rank in graph.ranks:
        work = work_of(graph, rank).by_kind
        communication, computation = work[ActivityKind.COMMUNICATION], work[ActivityKind.COMPUTATION]
        both = (length(communication), length(computation), length(intersection(communication, computation)))
        rows.append((rank, *(ns / 1000 for ns in both)))
    kinds = {"rank": "int64"} | dict.fromkeys(("communication_us", "computation_us", "hidden_us"), "float64")
    table = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
    some = table["communication_us"].where(table["communication_us"] > 0)
    return table.assign(overlap_percent=100 * table["hidden_us"] / some)
