"""Cores as a resource: threads of a host that are ready wait until one of its cores is free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Array
from htagraph.graph.evidence.cores import cores_of, dag_of
from htagraph.queries.weights import State

__all__ = ["with_cores"]


def with_cores(state: State) -> State:
    """Return the state with the waits for cores that follow from the work that overlaps in the predicted schedule."""
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
        pause = _scaled(shares.pause, changed, factor)
        rest = _scaled(shares.rest, changed, factor)
        shares = shares._replace(pause=pause, rest=rest)
    dag = dag_of(graph, state.lag, state.gap, state.head)
    gap = shared_cores.shared(dag, shortage.threads, shares)
    return replace(state, gap=gap)


def _scaled(share: Array, vertices: Array, factor: Array) -> Array:
    """Return the shares of all gaps, those of some vertices multiplied."""
    scaled = share.copy()
    scaled[vertices] = np.rint(scaled[vertices] * factor)
    return scaled
