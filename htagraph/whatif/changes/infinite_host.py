"""Infinitely fast host: only devices, networks and data loaders take time."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EDGES, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.queries.interruptions import interruption_time
from htagraph.queries.path_segments import HOST_CATEGORIES
from htagraph.queries.weights import NEVER, State, of_kind, weighed

__all__ = ["infinite_host"]


def infinite_host(state: State) -> State:
    """Return the state in which the host takes no time at all; the host still waits for the device, and for data.

    Work of host threads, the gaps between it, launch latency and the return from blocking calls take no time, nor do
    pauses of streams that waited for interrupted calls. A collective on the host is a transfer and stays, also one of
    which no other rank was read.
    """
    graph, edges = state.graph, state.graph.edges
    on_host = np.repeat(~graph.activities.on_device, 2)
    kind = graph.activities.kind[edges.target >> 1]
    own = of_kind(graph, EdgeKind.BODY)
    own &= on_host[edges.target]
    own &= kind != ActivityKind.HOST_COMMUNICATION
    own |= of_kind(graph, *(kind for kind, each in EDGES.items() if each.cause in HOST_CATEGORIES))
    rows = np.flatnonzero(own & (state.lag > NEVER))
    gone = on_host & ~of_kinds(graph.gap_kind, (GapKind.DATA_WAIT, GapKind.COLLECTIVE_EXCESS, GapKind.OTHER))
    gone |= graph.gap_kind == GapKind.LAUNCH_EXCESS
    gone[interruption_time(graph).gaps] = True
    lags = np.minimum(state.lag[rows], 0)
    free = weighed(state, rows, lags, gone)
    return free.as_ceiling("infinite_host")
