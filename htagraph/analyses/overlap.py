"""How much of each rank's communication is hidden behind computation."""

from __future__ import annotations

import pandas as pd

from htagraph.core.intervals import intersection, length
from htagraph.core.kinds import ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_of
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["overlap"]

TABLE = Table(
    "Communication overlapped with computation",
    Col("rank", "int64"),
    Col("communication_us computation_us"),
    Col("hidden_us", doc="time in which communication and computation run at once"),
    Col("beside_us", doc="time from the request of sends and receives until the thread did nothing but wait"),
    Col("overlap_percent", doc="100 · hidden / communication, NaN without communication"),
)


@described(TABLE)
@rank_by_rank
def overlap(graph: DependencyGraph) -> pd.DataFrame:
    """Return the share of each rank's communication time in which computation runs beside it.

    Communication time and computation time are unions over all streams (on a rank without device work, over host
    threads): time in which two collectives run at once counts once. An asynchronous send or receive of a host thread
    counts while the thread waits for it. How long the data was under way beside other work of the thread is not
    recorded, only that this time was at most ``beside_us``.

    Args:
        graph: the job.

    Returns:
        One row per rank: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.overlap(hg.load("data/demo"))
        >>> bool((table["hidden_us"] <= table["communication_us"]).all())
        True

    Source: HTA's communication-computation overlap.
    """
    rows = []
    for rank in graph.ranks:
        work = work_of(graph, rank)
        communication = work.by_kind[ActivityKind.COMMUNICATION]
        computation = work.by_kind[ActivityKind.COMPUTATION]
        parts = (communication, computation, intersection(communication, computation), work.beside)
        rows.append((rank, *(length(part) / 1000 for part in parts)))
    columns = ["rank", "communication_us", "computation_us", "hidden_us", "beside_us"]
    table = pd.DataFrame(rows, columns=columns, dtype="float64")
    some = table["communication_us"].where(table["communication_us"] > 0)
    return TABLE.frame(table.assign(overlap_percent=100 * table["hidden_us"] / some))
