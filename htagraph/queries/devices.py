"""Which device each rank ran on, as its recording says."""

from __future__ import annotations

import numpy as np

from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["device_of"]


def device_of(graph: DependencyGraph, rank: int) -> str:
    """Return the name of the device that a rank used, of those listed if its own is not; empty if unknown or unused."""
    trace, acts = graph.traces.get(rank), graph.activities
    of_rank = acts.of_rank(rank)
    said = acts.arg("device_name")[of_rank] if trace is None else np.zeros(0, np.int64)
    if (said >= 0).any():
        return graph.names[int(said.max())]
    used = {graph.lanes[lane].device for lane in np.unique(acts.lane[of_rank][acts.on_device[of_rank]]).tolist()}
    if trace is None or not used:
        return ""
    named = [(each.id, each.name) for each in trace.facts.devices if each.name]
    return next((name for number, name in named if number in used), named[0][1] if named else "")
