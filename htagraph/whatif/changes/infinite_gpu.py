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
    kind = state.graph.activities.kind
    is_work = of_kinds(kind, work)
    if not is_work.any():
        other = " but communication" if state.graph.activities.on_device.any() else ""
        msg = f"no device work{other} was recorded"
        raise NothingMeetsError(msg)
    labels = tuple(each.label for each in work)
    time = own_time(state, {"kind": labels})
    state = with_factor(state, time, 0.0)
    pauses = of_kind(state.graph, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)
    pauses &= ~waits_for_earlier_work(state.graph.activities, state.graph.edges)
    rows = np.flatnonzero(pauses & (state.lag > NEVER))
    lags = np.minimum(state.lag[rows], 0)
    return weighed(state, rows, lags)
