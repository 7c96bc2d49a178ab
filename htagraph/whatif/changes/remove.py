"""Remove: leave some activities out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import TRANSFERS, ActivityKind, EdgeKind
from htagraph.queries.weights import State, activities_of, of_kind, own_time, released, weighed, with_factor

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["remove"]


def remove(state: State, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state without the selected activities.

    They take no time. For kernels and copies, this includes the call that launched only them, the pause before them
    and the wait for their launch; later work on the stream still waits for what they waited for. No rank waits for a
    removed collective.

    Args:
        state: the weights so far.
        **criteria: which activities; see `DependencyGraph.select`.

    Raises:
        SelectionError: nothing meets the criteria; names what would.
    """
    graph = state.graph
    edges = graph.edges
    chosen = activities_of(state, criteria)
    time = own_time(state, criteria, loader=True)
    state = with_factor(state, replace(time, fixed=np.zeros(len(time.edges), np.int64)), 0.0)
    work = np.flatnonzero(chosen[:-1] & graph.activities.on_device)
    calls = np.zeros(len(chosen), np.bool_)
    calls[_launching_only(graph, work)] = True
    before = np.zeros(graph.vertex_count, np.bool_)
    before[2 * work] = True
    before[2 * np.flatnonzero(calls) + 1] = True
    into = before[edges.target]
    own = of_kind(graph, EdgeKind.BODY) & calls[edges.activity]
    pauses = into & of_kind(graph, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)
    state = weighed(state, own | pauses, np.minimum(state.lag[own | pauses], 0), before)
    waits = of_kind(graph, EdgeKind.LAUNCH, EdgeKind.GRAPH, EdgeKind.QUEUE_FULL, EdgeKind.MEMCPY_SYNC)
    meets = of_kind(graph, *TRANSFERS)
    meets &= chosen[edges.target >> 1] | chosen[edges.source >> 1] | (chosen[edges.activity] & (edges.activity >= 0))
    state = replace(state, unblocked=(*state.unblocked, np.flatnonzero(chosen)))
    return released(state, (into & waits) | meets)


def _launching_only(graph: DependencyGraph, work: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the calls that launched some of this device work and no other."""
    acts = graph.activities
    launched = np.bincount(acts.cause[acts.on_device & (acts.cause >= 0)], minlength=len(acts))
    cause = acts.cause[work]
    removed = np.bincount(cause[cause >= 0], minlength=len(acts))
    return np.flatnonzero((removed > 0) & (removed == launched) & (acts.kind == ActivityKind.LAUNCH))
