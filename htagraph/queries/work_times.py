"""The own times of the work of some ranks, as they are compared with each other's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.busy_time import self_time

__all__ = ["work_times"]


def work_times(
    graph: DependencyGraph, ranks: Array, *, device: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return (the kernels or operators of some ranks, the place of each one's rank in `ranks`, their times in ns).

    Args:
        graph: the job.
        ranks: the ranks, as positions in `graph.ranks`.
        device: True for kernels and their durations, False for operators and their self times.
    """
    acts = graph.activities
    place = np.full(int(max(graph.ranks)) + 2, -1)
    place[np.array(graph.ranks)[ranks]] = np.arange(len(ranks))
    kind = ActivityKind.COMPUTATION if device else ActivityKind.OP
    rows = np.flatnonzero((acts.kind == kind) & (place[acts.rank] >= 0))
    time = (acts.duration if device else self_time(graph))[rows].astype(np.float64)
    return rows, place[acts.rank[rows]], time
