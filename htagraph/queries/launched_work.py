"""The pairs of launches and the device work that they launched."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import LAUNCHES, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["launched"]


def launched(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (launch, device work) of all LAUNCH and GRAPH edges, by rank, start of the launch and of the work."""
    acts, edges = graph.activities, graph.edges
    pairs = np.flatnonzero(of_kinds(edges.kind, LAUNCHES))
    call, work = edges.source[pairs].astype(np.int64) >> 1, edges.target[pairs].astype(np.int64) >> 1
    order = np.lexsort((work, acts.start[work], call, acts.start[call], acts.rank[work]))
    return call[order], work[order]
