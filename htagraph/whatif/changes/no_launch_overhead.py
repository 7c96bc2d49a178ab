"""No launch overhead: launch calls take no time, and kernels may start at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from htagraph.core.errors import NothingMeetsError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.queries.change_scope import activities_of
from htagraph.queries.weights import State, of_kind, weighed

__all__ = ["no_launch_overhead"]


def no_launch_overhead(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which launch calls take no time and the latency of their work is 0.

    The operators around the calls keep their time, and a blocking copy still waits.

    Args:
        **criteria: which launches, such as ``rank=``, ``step=``, ``op=``; all by default.

    Raises:
        NothingMeetsError: there are no such launches.
    """
    graph, edges = state.graph, state.graph.edges
    kind = graph.activities.kind
    is_launch = kind == ActivityKind.LAUNCH
    if not is_launch.any():
        msg = "no launch calls were recorded"
        raise NothingMeetsError(msg)
    calls = activities_of(state, {"kind": ActivityKind.LAUNCH.label} | criteria)
    calls[:-1] &= is_launch
    own = of_kind(graph, EdgeKind.BODY) & calls[edges.activity]
    latency = of_kind(graph, EdgeKind.LAUNCH, EdgeKind.GRAPH) & calls[edges.source >> 1]
    rows = np.flatnonzero(own | latency)
    lags = np.minimum(state.lag[rows], 0)
    free = weighed(state, rows, lags)
    return free.as_ceiling("no_launch_overhead")
