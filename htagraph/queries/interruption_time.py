"""The time of a job that interruptions of host code are, on threads and in what they launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.computing import once
from htagraph.core.kinds import LAUNCHES, GapKind, of_kinds
from htagraph.queries.interrupted import Interruptions, interrupted
from htagraph.queries.weights import OwnTime

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["interruption_time"]

_IDLE = (GapKind.STREAM_IDLE, GapKind.LAUNCH_EXCESS)
"""What a stream's wait for a launch is, where an earlier kernel or copy ended after the call had begun; and else."""


@once
def interruption_time(graph: DependencyGraph) -> OwnTime:
    """Return the lags and gaps that interruptions are, of which the usual time of the code is fixed; gaps have none.

    They are the interrupted stretches of host threads, and how long a stream waited for what an interrupted call
    launched: from within the interruption until the kernel or copy started, if it did so as the interruption ended,
    give or take the usual time of the call. What started earlier was launched before the interruption, and of what
    started later, something else held it up.

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> len(interruption_time(hg.load("data/demo")).edges)
        0
    """
    found = interrupted(graph)
    inside = found.edge >= 0
    edges, fixed, gaps = _of_streams(graph, found)
    return OwnTime(
        np.concatenate((found.edge[inside], edges)), np.concatenate((found.usual[inside], fixed)),
        np.concatenate((found.vertex[~inside], gaps)),
    )  # fmt: skip


def _of_streams(graph: DependencyGraph, found: Interruptions) -> tuple[Array, Array, Array]:
    """Return (LAUNCH and GRAPH edges whose lag has an interruption; the rest of it, ns; gaps that are in one)."""
    edges = graph.edges
    row_of = np.full(len(graph.activities) + 1, -1)
    row_of[found.activity] = np.arange(len(found))
    row_of[-1] = -1  # code between activities launches nothing
    launches = np.flatnonzero(of_kinds(edges.kind, LAUNCHES))
    launches = launches[row_of[edges.source[launches] >> 1] >= 0]
    row = row_of[edges.source[launches] >> 1]
    started, ended = graph.time[edges.target[launches]], graph.time[found.vertex[row]]
    as_it_ended = np.abs(started - ended) <= found.usual[row]
    launches, row, started, ended = (each[as_it_ended] for each in (launches, row, started, ended))
    longer = edges.lag[launches] >= found.length[row]
    rest = (edges.lag[launches] - found.length[row] + found.usual[row])[longer]
    at = edges.target[launches].astype(np.int64)
    within = (started - graph.gap[at] >= ended - found.length[row]) & (graph.gap[at] > 0)
    return launches[longer], rest, np.unique(at[within & of_kinds(graph.gap_kind[at], _IDLE)])
