"""replay: the graph's times computed anew from its edges and gaps, as recorded or as they would be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.kinds import ActivityKind, GapKind
from htagraph.graph.activities import frozen
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.gaps import UNEXPLAINED

if TYPE_CHECKING:
    Times = npt.NDArray[np.int64]

__all__ = ["Replay", "predict", "replay", "without_unexplained"]


def predict(
    graph: DependencyGraph, lag: Times | None = None, gap: Times | None = None, head: Times | None = None
) -> Times:
    """Return the moment of each vertex: the latest that its predecessors allow, plus its gap; ns on the common clock.

    Args:
        graph: the dependencies.
        lag: of each edge, ns; as recorded if not given.
        gap: of each vertex, ns; as recorded if not given.
        head: the moment of each vertex that has no predecessor, ns; as recorded if not given.
    """
    from htagraph.core import traverse

    return traverse.schedule(
        graph.topological_order, graph.in_offsets, graph.in_edges, graph.edges.source,
        graph.edges.lag if lag is None else lag, graph.gap if gap is None else gap,
        graph.time if head is None else head,
    )  # fmt: skip


def without_unexplained(graph: DependencyGraph, gap: Times) -> Times:
    """Return gaps with those set to 0 that no dependency explains, see `htagraph.graph.gaps.UNEXPLAINED`."""
    return np.where(np.isin(graph.gap_kind, UNEXPLAINED), 0, gap)


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
        """The largest distance of a replayed moment from the recorded one, ns: 0, or the graph is wrong."""
        return int(np.abs(self.time - self.graph.time).max(initial=0))

    @property
    def makespan_ns(self) -> int:
        """From the first to the last moment, ns."""
        return int(self.time.max() - self.time.min()) if len(self.time) else 0

    @cached_property
    def explained_ns(self) -> int:
        """The makespan if gaps that nothing explains were 0, ns."""
        time = predict(self.graph, gap=without_unexplained(self.graph, self.graph.gap))
        return int(time.max() - time.min()) if len(time) else 0

    def to_frame(self) -> pd.DataFrame:
        """Return one row per activity that a trace recorded.

        Returns:
            DataFrame indexed by ``activity`` (int64) with ``rank`` (int32), ``start_us``, ``end_us`` (recorded),
            ``replayed_start_us``, ``replayed_end_us`` (float64, since the job's first activity) and ``error_ns``
            (int64, the larger distance of the two).
        """
        graph, time = self.graph, self.time
        acts, origin = graph.activities, graph.origin_ns
        rows = np.flatnonzero(~np.isin(acts.kind, (ActivityKind.JOIN, ActivityKind.BOUNDARY)))
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

    def gap_shares(self) -> pd.DataFrame:
        """Return how much time no edge covers, by kind of gap.

        Returns:
            One row per kind of gap that occurs, largest first: ``gap`` (str, a word of `GapKind`), ``count`` (int64,
            moments), ``total_us`` (float64), ``critical_us`` (float64: by how much the makespan falls if these gaps
            were 0), ``critical_percent`` (float64, of the makespan), ``explained`` (bool: False for those that a
            complete trace would not leave).
        """
        graph = self.graph
        rows = []
        for kind in GapKind:
            mine = (graph.gap_kind == kind) & (graph.gap > 0)
            if not mine.any():
                continue
            time = predict(graph, gap=np.where(mine, 0, graph.gap))
            saved = self.makespan_ns - int(time.max() - time.min())
            rows.append((
                kind.label, int(mine.sum()), int(graph.gap[mine].sum()) / 1000, saved / 1000,
                100 * saved / self.makespan_ns if self.makespan_ns else 0.0, kind not in UNEXPLAINED,
            ))  # fmt: skip
        kinds = {
            "gap": "str", "count": "int64", "total_us": "float64", "critical_us": "float64",
            "critical_percent": "float64", "explained": "bool",
        }  # fmt: skip
        table = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
        return table.sort_values("total_us", ascending=False, kind="stable").reset_index(drop=True)


def replay(graph: DependencyGraph) -> Replay:
    """Return the replay of a graph as recorded: proof that edges, lags and gaps account for every nanosecond.

    Every moment is the latest that its predecessors allow (theirs plus the edge's lag) plus its gap. That the replay is
    exact is an invariant, no claim that predictions are.

    Args:
        graph: the job.

    Returns:
        `Replay` with ``max_error_ns``, ``to_frame()`` and ``gap_shares()``.

    Example:
        >>> import htagraph as hg
        >>> hg.replay(hg.load("data/demo")).max_error_ns
        0
    """
    return Replay(graph)
