"""Another host: host work takes a multiple of its time."""

from __future__ import annotations

from htagraph.queries.weights import State, checked, own_time, with_factor

__all__ = ["host_factor"]


def host_factor(state: State, /, factor: float) -> State:
    """Return the state in which host work takes `factor` times as long, as on the host that a new device comes with.

    Args:
        factor: at least 0; 0.5 is a host twice as fast.

    Raises:
        SelectionError: there is no host work, or the factor is negative or not finite.
    """
    return with_factor(state, own_time(state, {"kind": "host"}), checked(factor, "factor"))
