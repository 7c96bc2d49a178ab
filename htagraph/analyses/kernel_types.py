"""Device time by the kinds of kernel that run at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.kinds import DEVICE_WORK
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import Work, works_of
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["kernel_types"]

TABLE = Table(
    "Kinds of kernels that run at the same time",
    Col("rank", "int64"),
    Col("executor", "str", '``"device"``, ``"device 1"`` for one of several, or ``"host"``'),
    Col("kinds", "str", '``"computation"``, ``"computation + communication"``, …'),
    Col("total_us"),
    Col("share_percent", doc="share of the device's busy time"),
)


@described(TABLE)
@rank_by_rank
def kernel_types(graph: DependencyGraph, *, by: Literal["device", "rank"] = "device") -> pd.DataFrame:
    """Return how long each combination of kernel kinds ran at the same time on each device.

    Every moment at which some kernel runs belongs to exactly one combination, so a row of one kind is the time in
    which it ran alone, and a device's rows sum to its busy time.

    Args:
        graph: the job.
        by: ``"device"``: devices of a rank one by one, as a process may use several. ``"rank"``: kernels on several
            devices of a rank run at the same time.

    Returns:
        One row per rank, device and combination that occurs, most time first within a device: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> "computation" in set(hg.kernel_types(hg.load("data/demo"))["kinds"])
        True

    Source: HTA's kernel type breakdown, which sums it over ranks.
    """
    check_choice("by", by, ("device", "rank"))
    rows: list[tuple[int, str, str, float]] = []
    for rank in graph.ranks:
        for work in works_of(graph, rank, apart=by == "device"):
            rows += _rows(rank, work)
    table = pd.DataFrame(rows, columns=["rank", "executor", "kinds", "total_us"])
    busy_us = table.groupby(["rank", "executor"])["total_us"].transform("sum")
    return TABLE.frame(table.assign(share_percent=100 * table["total_us"] / busy_us))


def _rows(rank: int, work: Work) -> Iterator[tuple[int, str, str, float]]:
    """Yield rank, executor, kinds and time, µs, of each combination, the longest first."""
    intervals = [work.by_kind[kind] for kind in DEVICE_WORK]
    totals = _combinations(intervals)
    longest_first = sorted(totals, key=lambda code: -totals[code])
    for code in longest_first:
        kinds = [
            kind.label  # of each bit that is set
            for bit, kind in enumerate(DEVICE_WORK)
            if code >> bit & 1
        ]
        us = totals[code] / 1000
        yield rank, work.executor, " + ".join(kinds), us


def _combinations(sets: list[tuple[np.ndarray, np.ndarray]]) -> dict[int, int]:
    """Return how long, ns, exactly the kinds of each bit pattern ran; patterns that never occur are absent."""
    time = np.concatenate([side for pair in sets for side in pair])
    change = np.concatenate([np.full(len(pair[0]), sign << bit) for bit, pair in enumerate(sets) for sign in (1, -1)])
    order = np.argsort(time, kind="stable")
    state, lasts = np.cumsum(change[order])[:-1], np.diff(time[order])
    return {int(code): int(lasts[state == code].sum()) for code in np.unique(state[lasts > 0]) if code}
