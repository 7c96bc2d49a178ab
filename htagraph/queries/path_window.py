"""The window of a critical path: from the first begin to the last end of the chosen steps and ranks."""

from __future__ import annotations

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector
from htagraph.queries.paths import CriticalPath, path_to

__all__ = ["path_in_window"]


def path_in_window(graph: DependencyGraph, steps: IntSelector = None, ranks: IntSelector = None) -> CriticalPath:
    """Return the critical path of a window; documented at `htagraph.critical_path`."""
    time = graph.time
    chosen = graph.select(step=steps, rank=ranks).activities
    if not len(chosen):
        if steps is not None:
            msg = f"critical_path: no step {steps} on rank {ranks}; steps by rank: graph.select(kind='step').to_frame()"
            raise SelectionError(msg)
        return path_to(graph, chosen, 0)
    chosen = chosen[graph.awake[chosen]] if graph.awake[chosen].any() else chosen
    kind = graph.activities.kind[chosen]
    if steps is not None and (kind == ActivityKind.BOUNDARY).any():
        begins, ends = chosen[kind == ActivityKind.STEP], chosen[kind == ActivityKind.BOUNDARY]
        return path_to(graph, 2 * ends, int(time[2 * begins].min()))
    vertices = np.concatenate((2 * chosen, 2 * chosen + 1))
    final = np.diff(graph.out_offsets)[vertices] == 0
    final[np.argmax(time[vertices])] = True
    return path_to(graph, vertices[final], int(time[vertices].min()))
