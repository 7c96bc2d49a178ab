"""Scale the network: the bytes of every transfer between ranks take a multiple of their time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.errors import NothingMeetsError
from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.queries.weights import OwnTime, State, Unsure, checked, own_time, taken_away, with_factor
from htagraph.whatif.fixed_parts import fixed_parts
from htagraph.whatif.links import refuse_without_transfers
from htagraph.whatif.rates import split

__all__ = ["scale_network"]


def scale_network(state: State, /, *, factor: float, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which the bytes of transfers take `factor` times as long; waits between ranks are derived.

    What a transfer takes besides its bytes stays: latency, scheduling and copies. Transfers of several sizes show how
    long that is. Where only one size was recorded, all of its time counts as that of its bytes, and the interval holds
    that some may not. The spread of the ends of a collective's members, up to 5 µs, stays too. Where the partners of
    a communication are not in the graph, the shortest communication of its name and size is taken as pure transfer.
    What a transfer between host threads took longer than usual stays, too. Without transfers (`factor` 0) all of that
    is gone.

    Args:
        factor: at least 0; 0.5 is a network twice as fast.
        **criteria: which communication, such as ``rank=`` or ``name=``; all of it by default.

    Raises:
        SelectionError: there is no such communication, or the factor is negative or not finite.
    """
    factor = checked(factor, "factor")
    time = _transfer_time(state, criteria)
    if not factor:
        return with_factor(state, taken_away(state, time), factor)
    return _with_slower_bytes(state, time, factor)


def _transfer_time(state: State, criteria: dict[str, Any]) -> OwnTime:
    """Return the time of the communication that meets some criteria.

    Raises:
        NothingMeetsError: none does.
    """
    refuse_without_transfers(state.graph)
    kinds = tuple(kind.label for kind in COMMUNICATION)
    try:
        return own_time(state, {"kind": kinds} | criteria)
    except NothingMeetsError:
        if not criteria:
            raise
        acts = state.graph.activities
        names = sorted({state.graph.names[name] for name in acts.name[of_kinds(acts.kind, COMMUNICATION)].tolist()})
        asked = ", ".join(f"{key}={value!r}" for key, value in criteria.items())
        msg = f"no transfer between ranks meets {asked}; those of this job are {', '.join(names[:3])}"
        raise NothingMeetsError(msg) from None


def _with_slower_bytes(state: State, time: OwnTime, factor: float) -> State:
    """Return the state in which all but the fixed part of some time is multiplied, and how far that may be off."""
    least, usual, most = (_fixed(state, time, part) for part in fixed_parts(state.graph))
    changed, was = with_factor(state, replace(time, fixed=usual), factor), state.lag[time.edges]
    now = changed.lag[time.edges]
    known = np.flatnonzero((was > 0) & (now > 0) & (least < most))
    if not len(known):
        return changed
    ends = np.stack([split(was[known], part[known]).at(factor) for part in (least, most)]) / now[known]
    owner = state.graph.edges.activity[time.edges[known]].astype(np.int64)
    return replace(changed, unsure=(*changed.unsure, Unsure(owner, ends.min(axis=0), ends.max(axis=0))))


def _fixed(state: State, time: OwnTime, part: Array) -> Ints:
    """Return how much of each lag stays: what is waiting, and a fixed part, ns."""
    stays = time.fixed + np.rint(part[time.edges]).astype(np.int64)
    return np.minimum(stays, np.maximum(state.lag[time.edges], 0))
