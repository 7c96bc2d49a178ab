"""Cores as a resource: threads of a host that are ready wait until one of its cores is free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.graph.evidence.cores import cores_of, dag_of
from htagraph.queries.weights import State

__all__ = ["with_cores"]


def with_cores(state: State) -> State:
    """Return the state with the waits for cores that follow from what runs at once in the predicted schedule."""
    graph = state.graph
    found = cores_of(graph)
    if found is None or (state.lag is graph.edges.lag and state.gap is graph.gap and state.head is graph.time):
        return state
    from htagraph.core import shared_cores

    changed = np.flatnonzero((state.gap != graph.gap) & (found.threads.kind != shared_cores.RUNS))
    shares = found.shares
    if len(changed):
        pause, rest = shares.pause.copy(), shares.rest.copy()
        factor = np.maximum(state.gap[changed], 0) / np.maximum(graph.gap[changed], 1)
        for part in (pause, rest):
            part[changed] = np.rint(part[changed] * factor)
        shares = shares._replace(pause=pause, rest=rest)
    return replace(
        state, gap=shared_cores.shared(dag_of(graph, state.lag, state.gap, state.head), found.threads, shares)
    )
