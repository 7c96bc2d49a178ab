"""How much of each device's communication is hidden behind computation."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.intervals import intersection, length
from htagraph.core.kinds import ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import Work, works_of
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["overlap"]

TABLE = Table(
    "Communication overlapped with computation",
    Col("rank", "int64"),
    Col("executor", "str", '``"device"``, ``"device 1"`` for one of several, or ``"host"``'),
    Col("communication_us computation_us"),
    Col("hidden_us", doc="time in which communication and computation run at once"),
    Col("beside_us", doc="time from the request of sends and receives until the thread did nothing but wait"),
    Col("overlap_percent", doc="100 · hidden / communication, NaN without communication"),
)


@described(TABLE)
@rank_by_rank
def overlap(graph: DependencyGraph, *, by: Literal["device", "rank"] = "device") -> pd.DataFrame:
    """Return the share of each device's communication time in which computation runs beside it.

    Communication time and computation time are unions over all streams (on a rank without device work, over host
    threads): time in which two collectives run at once counts once. An asynchronous send or receive of a host thread
    counts while the thread waits for it. How long the data was under way beside other work of the thread is not
    recorded, only that this time was at most ``beside_us``.

    Args:
        graph: the job.
        by: ``"device"``: one row per device of a rank, as a process may use several. ``"rank"``: one row per rank,
            whose communication is hidden behind computation on any of its devices.

    Returns:
        One row per rank and device, and one per rank without device work: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.overlap(hg.load("data/demo"))
        >>> bool((table["hidden_us"] <= table["communication_us"]).all())
        True

    Source: HTA's communication-computation overlap.
    """
    check_choice("by", by, ("device", "rank"))
    rows = [_row(rank, work) for rank in graph.ranks for work in works_of(graph, rank, apart=by == "device")]
    columns = ["rank", "executor", "communication_us", "computation_us", "hidden_us", "beside_us"]
    table = pd.DataFrame(rows, columns=columns)
    some = table["communication_us"].where(table["communication_us"] > 0)
    return TABLE.frame(table.assign(overlap_percent=100 * table["hidden_us"] / some))


def _row(rank: int, work: Work) -> tuple[Any, ...]:
    """Return rank, executor, and times of communication, of computation, of both at once, and beside waits, µs."""
    communication = work.by_kind[ActivityKind.COMMUNICATION]
    computation = work.by_kind[ActivityKind.COMPUTATION]
    hidden = intersection(communication, computation)
    times = (communication, computation, hidden, work.beside)
    return (rank, work.executor, *(length(time) / 1000 for time in times))
