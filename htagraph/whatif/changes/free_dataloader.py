"""Free data loader: nobody ever waits for the next batch."""

from __future__ import annotations

from typing import Any

from htagraph.queries.weights import State, with_factor
from htagraph.whatif.loader_time import loader_time

__all__ = ["free_dataloader"]


def free_dataloader(state: State, **criteria: Any) -> State:  # noqa: ANN401 - rank and step
    """Return the state in which the next batch is always there.

    Args:
        state: the weights so far.
        **criteria: ``rank=`` and ``step=``: of which ranks and steps; all by default.

    Raises:
        SelectionError: no wait for a data loader is in the graph.
    """
    return with_factor(state, loader_time(state, criteria), 0.0)
