"""Replay: all times of a graph computed from its edges and gaps, as recorded or as changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.errors import check_type
from htagraph.core.kinds import ABSENT_IN_COMPLETE_TRACES, ADDED, UNEXPLAINED, GapKind, of_kinds
from htagraph.core.tables import Col, Table, described
from htagraph.graph.activities import frozen
from htagraph.graph.dependency_graph import DependencyGraph

if TYPE_CHECKING:
    Times = npt.NDArray[np.int64]

__all__ = ["Replay", "predict", "replay", "without_unexplained"]

GAPS = Table(
    "Time that no dependency explains, by kind",
    Col("gap", "str", "kind of the gaps, a word of `GapKind`"),
    Col("count", "int64", "number of gaps"),
    Col("total_us"),
    Col("critical_us", doc="how much shorter the makespan is without these gaps"),
    Col("critical_percent", doc="share of the makespan"),
    Col("explained", "bool", "False for gaps that a complete trace would not have"),
    rank_by="total_us",
)


def predict(
    graph: DependencyGraph, lag: Times | None = None, gap: Times | None = None, head: Times | None = None
) -> Times:
    """Return the moment of each vertex, ns on the common clock: the latest that a predecessor allows, plus its gap.

    Lags of edges, gaps of vertices and heads (moments of vertices without a predecessor), ns, are as recorded if not
    given.
    """
    from htagraph.core import traverse

    return traverse.schedule(
        graph.replay_order, graph.in_offsets, graph.in_edges, graph.edges.source,
        graph.edges.lag if lag is None else lag, graph.gap if gap is None else gap,
        graph.time if head is None else head,
    )  # fmt: skip


def without_unexplained(graph: DependencyGraph, gap: Times) -> Times:
    """Return the gaps, ns, with unexplained ones set to 0 (`htagraph.core.kinds.UNEXPLAINED`)."""
    return np.where(of_kinds(graph.gap_kind, UNEXPLAINED), 0, gap)


@dataclass(frozen=True, eq=False)
class Replay:
    """The replay of a graph as it was recorded."""

    graph: DependencyGraph

    @cached_property
    def time(self) -> Times:
        """The replayed moment of each vertex, ns on the common clock."""
        return frozen(predict(self.graph))

    @property
    def max_error_ns(self) -> int:
        """The largest difference between a replayed and a recorded moment, ns; anything but 0 is a bug of the graph."""
        return int(np.abs(self.time - self.graph.time).max(initial=0))

    @property
    def makespan_ns(self) -> int:
        """From the first to the last moment, ns."""
        return int(self.time.max() - self.time.min()) if len(self.time) else 0

    @cached_property
    def explained_ns(self) -> int:
        """The makespan without the gaps that a complete trace would not have, ns."""
        is_missing = of_kinds(self.graph.gap_kind, ABSENT_IN_COMPLETE_TRACES)
        time = predict(self.graph, gap=np.where(is_missing, 0, self.graph.gap))
        return int(time.max() - time.min()) if len(time) else 0

    def to_frame(self) -> pd.DataFrame:
        """Return the recorded and the replayed times, one row per recorded activity.

        Returns:
            DataFrame indexed by ``activity`` (int64) with ``rank`` (int32), ``start_us``, ``end_us`` (recorded),
            ``replayed_start_us``, ``replayed_end_us`` (float64, since the job's first activity) and ``error_ns``
            (int64, the larger difference of the two).
        """
        graph, time = self.graph, self.time
        acts, origin = graph.activities, graph.origin_ns
        rows = np.flatnonzero(~of_kinds(acts.kind, ADDED))
        error = np.abs(time - graph.time).reshape(-1, 2).max(axis=1, initial=0)
        return pd.DataFrame(
            {
                "rank": acts.rank[rows],
                "start_us": (graph.time[2 * rows] - origin) / 1000,
                "end_us": (graph.time[2 * rows + 1] - origin) / 1000,
                "replayed_start_us": (time[2 * rows] - origin) / 1000,
                "replayed_end_us": (time[2 * rows + 1] - origin) / 1000,
                "error_ns": error[rows],
            },
            index=pd.Index(rows, name="activity"),
        )

    @described(GAPS)
    def gap_shares(self) -> pd.DataFrame:
        """Return the time that no edge covers, by kind of gap.

        Returns:
            One row per kind of gap that occurs, largest first: {columns}.
        """
        graph = self.graph
        rows = []
        for kind in GapKind:
            of_kind = (graph.gap_kind == kind) & (graph.gap > 0)
            if not of_kind.any():
                continue
            time = predict(graph, gap=np.where(of_kind, 0, graph.gap))
            saved = self.makespan_ns - int(time.max() - time.min())
            rows.append((
                kind.label, int(of_kind.sum()), int(graph.gap[of_kind].sum()) / 1000, saved / 1000,
                100 * saved / self.makespan_ns if self.makespan_ns else 0.0, kind not in ABSENT_IN_COMPLETE_TRACES,
            ))  # fmt: skip
        table = GAPS.frame(rows)
        return GAPS.ranked(table)


def replay(graph: DependencyGraph) -> Replay:
    """Return the replay of a graph as recorded, which shows that edges, lags and gaps account for every nanosecond.

    The time of a vertex is the latest time that its predecessors allow (time of the predecessor plus lag of the edge),
    plus the gap of the vertex. The replay is exact by construction, which says nothing about the accuracy of
    predictions.

    Args:
        graph: the job.

    Returns:
        `Replay` with ``max_error_ns``, ``to_frame()`` and ``gap_shares()``.

    Example:
        >>> import htagraph as hg
        >>> hg.replay(hg.load("data/demo")).max_error_ns
        0
    """
    check_type(graph, DependencyGraph, "htagraph.replay takes a graph (of a job on workers: job.load([0, 1]))")
    return Replay(graph)
