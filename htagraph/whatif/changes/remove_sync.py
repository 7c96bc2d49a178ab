"""Remove a host sync: blocking calls return without waiting for the device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.core.arrays import Mask
from htagraph.core.errors import NothingMeetsError
from htagraph.core.kinds import DEVICE_WAITS, OPERATORS, ActivityKind, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import activities_of
from htagraph.queries.host_time import blocked_by_copies, device_waits
from htagraph.queries.weights import NEVER, State, of_kind, without_waits

__all__ = ["remove_sync"]


def remove_sync(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which the selected calls do not wait for the device; their own cost stays.

    A copy of pageable memory to the device still blocks. One to the host need not, where its result is read later.

    Args:
        **criteria: which calls, such as ``name="cudaStreamSynchronize"`` or ``op="aten::item"``; all by default.

    Raises:
        NothingMeetsError: no selected call waits for the device; the error names some that do.
    """
    graph = state.graph
    try:
        calls, why = activities_of(state, {"kind": "host"} | criteria), "none of the selected activities waits"
    except NothingMeetsError as error:
        calls, why = np.zeros(1 + len(graph.activities), np.bool_), str(error)
    waits = of_kind(graph, *DEVICE_WAITS) & (state.lag > NEVER) & ~blocked_by_copies(graph)
    dropped = waits & device_waits(graph, calls)
    if not dropped.any() and not (calls[:-1] & (graph.activities.kind == ActivityKind.SYNC)).any():
        acts, rows = graph.activities, graph.edges.target[waits] >> 1
        around = graph.tree.nearest(of_kinds(acts.kind, OPERATORS), rows)
        names = np.unique(acts.name[np.concatenate((rows, around[around >= 0]))])
        known = ", ".join(graph.names[name] for name in names[:8]) or "none in this graph"
        alone = "; copies of pageable memory block by themselves" if blocked_by_copies(graph).any() else ""
        msg = f"{why}; calls and operators that wait for the device: {known}{alone}"
        raise NothingMeetsError(msg)
    if not dropped.any():
        state = state.with_reason(_why_none(graph, calls))
    return replace(without_waits(state, dropped), unblocked=(*state.unblocked, np.flatnonzero(calls)))


def _why_none(graph: DependencyGraph, calls: Mask) -> str:
    """Return why no selected call waits for the device."""
    by_copies = (blocked_by_copies(graph) & device_waits(graph, calls)).any()
    if by_copies:
        return (
            "the selected calls wait for copies of pageable memory only, and these copies block by "
            "themselves; pin_memory leaves the wait out"
        )
    return "the device was done with its work whenever a selected call asked for it"
