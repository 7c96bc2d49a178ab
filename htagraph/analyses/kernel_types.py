"""Device time by the kinds of kernel that run at the same time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import DEVICE_WORK
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_of
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["kernel_types"]

TABLE = Table(
    "Kinds of kernels that run at the same time",
    Col("rank", "int64"),
    Col("kinds", "str", '``"computation"``, ``"computation + communication"``, …'),
    Col("total_us"),
    Col("share_percent", doc="share of the rank's busy time"),
)


@described(TABLE)
@rank_by_rank
def kernel_types(graph: DependencyGraph) -> pd.DataFrame:
    """Return how long each combination of kernel kinds ran at the same time on each rank.

    Every moment at which some kernel runs belongs to exactly one combination, so a row of one kind is the time in
    which it ran alone, and a rank's rows sum to its busy time.

    Args:
        graph: the job.

    Returns:
        One row per rank and combination that occurs, most time first within a rank: {columns}.

    Example:
        >>> import htagraph as hg
        >>> "computation" in set(hg.kernel_types(hg.load("data/demo"))["kinds"])
        True

    Source: HTA's kernel type breakdown, which sums it over ranks.
    """
    rows = []
    for rank in graph.ranks:
        by_kind = work_of(graph, rank).by_kind
        totals = _combinations([by_kind[kind] for kind in DEVICE_WORK])
        rows += [
            (rank, " + ".join(kind.label for bit, kind in enumerate(DEVICE_WORK) if code >> bit & 1), ns / 1000)
            for code, ns in sorted(totals.items(), key=lambda item: -item[1])
        ]
    table = pd.DataFrame(rows, columns=["rank", "kinds", "total_us"])
    share = 100 * table["total_us"] / table.groupby("rank")["total_us"].transform("sum")
    return TABLE.frame(table.assign(share_percent=share))


def _combinations(sets: list[tuple[np.ndarray, np.ndarray]]) -> dict[int, int]:
    """Return how long, ns, exactly the kinds of each bit pattern ran; patterns that never occur are absent."""
    time = np.concatenate([side for pair in sets for side in pair])
    change = np.concatenate([np.full(len(pair[0]), sign << bit) for bit, pair in enumerate(sets) for sign in (1, -1)])
    order = np.argsort(time, kind="stable")
    state, lasts = np.cumsum(change[order])[:-1], np.diff(time[order])
    return {int(code): int(lasts[state == code].sum()) for code in np.unique(state[lasts > 0]) if code}
