"""Infinitely fast GPU: only hosts, networks and data loaders take time."""

from __future__ import annotations

import numpy as np

from htagraph.core.errors import NothingMeetsError
from htagraph.core.kinds import DEVICE, ActivityKind, EdgeKind, of_kinds
from htagraph.graph.measures.earlier_work import waits_for_earlier_work
from htagraph.queries.weights import NEVER, State, of_kind, own_time, weighed, with_factor

__all__ = ["infinite_gpu"]


def infinite_gpu(state: State) -> State:
    """Return the state in which kernels, copies and the device's own pauses take no time; transfers between ranks do.

    Work that was begun before the recording ends when it did: nothing that was recorded is changed by that.

    Raises:
        NothingMeetsError: the job has no device work.
    """
    graph = state.graph
    kinds = tuple(kind for kind in DEVICE if kind != ActivityKind.COMMUNICATION)
    is_work = of_kinds(graph.activities.kind, kinds)
    if not is_work.any():
        only = " but communication" if graph.activities.on_device.any() else ""
        msg = f"no device work{only} was recorded"
        raise NothingMeetsError(msg)
    labels = tuple(kind.label for kind in kinds)
    work = own_time(state, {"kind": labels})
    state = with_factor(state, work, 0.0)
    is_pause = of_kind(
        graph,
        EdgeKind.STREAM,
        EdgeKind.EVENT_WAIT,
    )
    is_pause &= ~waits_for_earlier_work(graph.activities, graph.edges)
    pauses = np.flatnonzero(is_pause & (state.lag > NEVER))
    lags = np.minimum(state.lag[pauses], 0)
    free = weighed(state, pauses, lags)
    return free.as_ceiling("infinite_gpu")
