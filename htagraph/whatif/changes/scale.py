"""Scale: some activities take a multiple of their time."""

from __future__ import annotations

from typing import Any

from htagraph.queries.weights import State, checked, own_time, with_factor
from htagraph.whatif.rewire import with_scope_note

__all__ = ["scale"]


def scale(state: State, /, *, factor: float, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which the selected activities take `factor` times as long.

    The time of an operator is its self time, with the Python in it that no inner operator covers; ``op=``, or the name
    of an annotation, step or Python frame, selects everything inside and all device work launched there. A note says
    how much time the name selects. ``kind="untraced"`` selects the Python between operators where no stacks were
    recorded; see `untraced_gaps` for its criteria. For communication the transfer is scaled, never the wait for other
    ranks.

    Args:
        factor: at least 0; 0 removes the time, 1 changes nothing.
        **criteria: which activities; see `DependencyGraph.select`. None means all.

    Raises:
        SelectionError: nothing meets the criteria, or the factor is negative or not finite.
    """
    factor = checked(factor, "factor")
    time = own_time(state, criteria)
    return with_scope_note(with_factor(state, time, factor), state, time, criteria, "scaled")
