"""Free data loader: the next batch is always ready."""

from __future__ import annotations

from typing import Any

from htagraph.queries.weights import State, loader_time, with_factor

__all__ = ["free_dataloader"]


def free_dataloader(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - rank and step
    """Return the state in which no rank waits for the data loader.

    Args:
        **criteria: ``rank=`` and ``step=``; all of them by default.

    Raises:
        SelectionError: no wait for a data loader is in the graph.
    """
    return with_factor(state, loader_time(state, criteria), 0.0)
