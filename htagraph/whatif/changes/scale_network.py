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

    The fixed part of a transfer stays: latency, scheduling and copies. Transfers of several sizes show how long this
    part is, and so do barriers. Where only one size was recorded, the part that further operations of the hosts show
    counts, or the part that is usual (0.15 ms for collectives of host threads, nothing for devices and messages), and
    the interval holds how far this may be off. The spread of the ends of a collective's members, up to 5 µs, stays
    too, and so does the time that a transfer between host threads took longer than usual. Where the partners of a
    communication are not in the graph, the shortest communication of its name and size is taken as pure transfer.
    Without transfers (`factor` 0) no part stays.

    Args:
        state: the job.
        factor: at least 0; 0.5 is a network twice as fast.
        **criteria: which communication, by the criteria of `DependencyGraph.select`; all of it by default.

    Returns:
        The state with longer or shorter transfers, and with how far the fixed part may be off.

    Raises:
        SelectionError: there is no communication that meets the criteria, or the factor is negative or not finite.

    Example:
        >>> import htagraph as hg
        >>> hg.what_if(hg.load("data/demo")).scale_network(factor=0.5).run().speedup > 1
        True
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
        transfers = of_kinds(acts.kind, COMMUNICATION)
        codes = np.unique(acts.name[transfers])
        names = sorted(state.graph.names[code] for code in codes)
        asked = ", ".join(f"{key}={value!r}" for key, value in criteria.items())
        msg = f"no transfer between ranks meets {asked}; those of this job are {', '.join(names[:3])}"
        raise NothingMeetsError(msg) from None


def _with_slower_bytes(state: State, time: OwnTime, factor: float) -> State:
    """Return the state in which all but the fixed part of some time is multiplied, and how far that may be off."""
    fixed = fixed_parts(state.graph)
    usual = replace(time, fixed=_fixed(state, time, fixed.usual))
    changed = with_factor(state, usual, factor)
    least = _fixed(state, time, fixed.least)
    most = _fixed(state, time, fixed.most)
    was = state.lag[time.edges]
    now = changed.lag[time.edges]
    rows = np.flatnonzero((was > 0) & (now > 0) & (least < most))
    if not len(rows):
        return changed
    with_least = split(was[rows], least[rows]).at(factor) / now[rows]
    with_most = split(was[rows], most[rows]).at(factor) / now[rows]
    owner = state.graph.edges.activity[time.edges[rows]].astype(np.int64)
    unsure = Unsure(owner, np.minimum(with_least, with_most), np.maximum(with_least, with_most))
    return replace(changed, unsure=(*changed.unsure, unsure))


def _fixed(state: State, time: OwnTime, fixed: Array) -> Ints:
    """Return how much of each lag stays, ns: the time that is waiting, and a fixed part."""
    fixed_ns = np.rint(fixed[time.edges]).astype(np.int64)
    stays = time.fixed + fixed_ns
    longest = np.maximum(state.lag[time.edges], 0)
    return np.minimum(stays, longest)
