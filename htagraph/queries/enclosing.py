"""What lies around an activity or its launch, and the pairs of launches and works: queries that several analyses share.

Above an activity lies what encloses it on its thread, above device work its launch, and above what the autograd engine
runs the region that called it; see `htagraph.graph.tree`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import EdgeKind
from htagraph.core.parents import nearest
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tree import tree_parents

__all__ = ["enclosing", "launched", "regions"]

Array: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[np.int64]


def launched(graph: DependencyGraph) -> tuple[Ints, Ints]:
    """Return (launch, work) of all LAUNCH and GRAPH edges, in the order of rank, launch and work by start and file."""
    acts, edges = graph.activities, graph.edges
    pairs = np.flatnonzero(np.isin(edges.kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH)))
    call, work = edges.source[pairs].astype(np.int64) >> 1, edges.target[pairs].astype(np.int64) >> 1
    order = np.lexsort((work, acts.start[work], call, acts.start[call], acts.rank[work]))
    return call[order], work[order]


def enclosing(graph: DependencyGraph, wanted: Array, activities: Array) -> Ints:
    """Return the innermost wanted activity that each one is, or that lies around it or its launch; -1 for none.

    Args:
        graph: the job.
        wanted: which activities are looked for (bool for every activity).
        activities: numbers of activities; -1 gives -1.
    """
    above = tree_parents(graph.activities, graph.names)
    return nearest(above, wanted, activities)


def regions(graph: DependencyGraph, wanted: Array) -> tuple[Ints, Ints]:
    """Return (the wanted activities, the innermost other wanted one around each, -1 of the outermost)."""
    above = tree_parents(graph.activities, graph.names)
    rows = np.flatnonzero(wanted)
    return rows, nearest(above, wanted, above[rows])
