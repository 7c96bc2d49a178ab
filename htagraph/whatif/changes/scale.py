"""Scale: some activities take a multiple of their time."""

from __future__ import annotations

from typing import Any

from htagraph.queries.weights import State, checked, own_time, with_factor

__all__ = ["scale"]


def scale(state: State, *, factor: float, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which the selected activities take `factor` times as long.

    The time of an operator is its self time; ``op=``, or the name of an annotation or step, selects everything inside
    and all device work launched there. For communication the transfer is scaled, never the wait for other ranks.

    Args:
        state: the weights so far.
        factor: at least 0; 0 removes the time, 1 changes nothing.
        **criteria: which activities; see `DependencyGraph.select`. None means all.

    Raises:
        SelectionError: nothing meets the criteria, or the factor is negative or not finite.
    """
    factor = checked(factor, "factor")
    return with_factor(state, own_time(state, criteria), factor)
