"""Infinitely fast GPU: only hosts, networks and data loaders take time."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import DEVICE, ActivityKind, EdgeKind
from htagraph.graph.measures.earlier_work import waits_for_earlier_work
from htagraph.queries.weights import NEVER, State, of_kind, own_time, weighed, with_factor

__all__ = ["infinite_gpu"]


def infinite_gpu(state: State) -> State:
    """Return the state in which kernels, copies and the device's own pauses take no time; transfers between ranks do.

    Work that was begun before the recording ends when it did: nothing that was recorded is changed by that.

    Raises:
        SelectionError: the job has no device work.
    """
    kinds = tuple(kind.label for kind in DEVICE if kind != ActivityKind.COMMUNICATION)
    state = with_factor(state, own_time(state, {"kind": kinds}), 0.0)
    pauses = of_kind(state.graph, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)
    pauses &= ~waits_for_earlier_work(state.graph.activities, state.graph.edges)
    rows = np.flatnonzero(pauses & (state.lag > NEVER))
    return weighed(state, rows, np.minimum(state.lag[rows], 0))
