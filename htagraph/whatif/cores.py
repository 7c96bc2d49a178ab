"""Cores as a resource: threads of a host that are ready wait until one of its cores is free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Array
from htagraph.graph.evidence.cores import cores_of, dag_of
from htagraph.queries.weights import State

__all__ = ["with_cores"]


def with_cores(state: State) -> State:
    """Return a state with the waits for cores that follow from work that overlaps in the predicted schedule."""
    graph = state.graph
    shortage = cores_of(graph)
    is_recorded = state.lag is graph.edges.lag and state.gap is graph.gap and state.head is graph.time
    if shortage is None or is_recorded:
        return state
    from htagraph.core import shared_cores

    may_pause = shortage.threads.kind != shared_cores.RUNS
    changed = np.flatnonzero((state.gap != graph.gap) & may_pause)
    shares = shortage.shares
    if len(changed):
        recorded_gap = np.maximum(graph.gap[changed], 1)
        factor = np.maximum(state.gap[changed], 0) / recorded_gap
        shares = shares._replace(
            pause=_scaled(shares.pause, changed, factor),
            wake=_scaled(shares.wake, changed, factor),
        )
    dag = dag_of(graph, state.lag, state.gap, state.head)
    gap = shared_cores.shared(dag, shortage.threads, shares)
    return replace(state, gap=gap)


def _scaled(share: Array, vertices: Array, factor: Array) -> Array:
    """Return the shares of all gaps, with a factor for each changed vertex.

    Args:
        share: the share of each gap, ns.
        vertices: the changed vertices.
        factor: by how much the share of each changed vertex is multiplied.

    Returns:
        The new shares, ns.
    """
    scaled = share.copy()
    scaled[vertices] = np.rint(scaled[vertices] * factor)
    return scaled
