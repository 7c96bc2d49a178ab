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
    work = tuple(kind for kind in DEVICE if kind != ActivityKind.COMMUNICATION)
    graph = state.graph
    acts = graph.activities
    is_work = of_kinds(acts.kind, work)
    if not is_work.any():
        exception = " but communication" if acts.on_device.any() else ""
        msg = f"no device work{exception} was recorded"
        raise NothingMeetsError(msg)
    labels = tuple(kind.label for kind in work)
    time = own_time(state, {"kind": labels})
    state = with_factor(state, time, 0.0)
    pauses = of_kind(graph, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)
    pauses &= ~waits_for_earlier_work(acts, graph.edges)
    pauses &= state.lag > NEVER
    rows = np.flatnonzero(pauses)
    lags = np.minimum(state.lag[rows], 0)
    return weighed(state, rows, lags)
