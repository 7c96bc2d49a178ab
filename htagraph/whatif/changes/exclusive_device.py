"""A device of its own: nothing runs on the devices but the recorded work."""

from __future__ import annotations

import numpy as np

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import GapKind
from htagraph.queries.weights import State, weighed

__all__ = ["exclusive_device"]


def exclusive_device(state: State) -> State:
    """Return the state in which devices run the recorded work alone.

    Work that started late, although its launch had returned and the device ran nothing recorded, starts at once.

    Raises:
        SelectionError: no work waited for work that was not recorded.
    """
    waited = state.graph.gap_kind == GapKind.OTHER_WORK
    if not waited.any():
        msg = "no launched work waited while its device ran nothing recorded"
        raise SelectionError(msg)
    no_edges = np.zeros(0, np.int64)
    return weighed(state, no_edges, no_edges, waited)
