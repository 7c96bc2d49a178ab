"""Free data loader: the next batch is always ready."""

from __future__ import annotations

from typing import Any

from htagraph.queries.fetches import loader_time
from htagraph.queries.weights import State, with_factor

__all__ = ["free_dataloader"]


def free_dataloader(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - rank and step
    """Return the state in which no rank waits for the data loader.

    Waits for the loader's workers are left out, too. Other waits for something outside of the recording stay, and
    `free_outside` has these. The gain is a ceiling: devices and cores that no longer pause may be slower than recorded.

    Args:
        **criteria: ``rank=`` and ``step=``; all of them by default.

    Raises:
        SelectionError: no wait for a data loader is in the graph.
    """
    free = with_factor(state, loader_time(state, criteria), 0.0)
    return free.as_ceiling("free_dataloader")
