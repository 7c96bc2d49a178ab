"""Scale the network: every transfer between ranks takes a multiple of its time."""

from __future__ import annotations

from typing import Any

from htagraph.core.kinds import ActivityKind
from htagraph.queries.weights import State, checked, own_time, taken_away, with_factor

__all__ = ["scale_network"]


def scale_network(state: State, /, *, factor: float, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which transfers take `factor` times as long; waits between ranks are derived.

    The spread of the ends of a collective's members, up to 5 µs, stays: it does not depend on the network. Where the
    partners of a communication are not in the graph, the shortest communication of its name and size is taken as pure
    transfer. What a transfer between host threads took longer than usual stays too, unless there are no transfers
    (`factor` 0).

    Args:
        factor: at least 0; 0.5 is a network twice as fast.
        **criteria: which communication, such as ``rank=`` or ``name=``; all of it by default.

    Raises:
        SelectionError: there is no such communication, or the factor is negative or not finite.
    """
    factor = checked(factor, "factor")
    kinds = (ActivityKind.COMMUNICATION.label, ActivityKind.HOST_COMMUNICATION.label)
    time = own_time(state, {"kind": kinds} | criteria)
    return with_factor(state, time if factor else taken_away(state, time), factor)
