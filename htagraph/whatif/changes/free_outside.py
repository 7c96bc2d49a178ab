"""Free outside: nobody waits for another process, a file, a socket or a sleep that was not recorded."""

from __future__ import annotations

from typing import Any

from htagraph.queries.fetches import outside_time
from htagraph.queries.weights import State, with_factor

__all__ = ["free_outside"]


def free_outside(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - rank and step
    """Return the state in which no thread waits for something outside of the recording.

    Waits for a data loader's workers stay, and `free_dataloader` has these. The gain is a ceiling: devices and cores
    that no longer pause may be slower than recorded.

    Args:
        **criteria: ``rank=`` and ``step=``; without these, the whole job.

    Raises:
        SelectionError: no wait for something outside of the recording is in the graph.
    """
    free = with_factor(state, outside_time(state, criteria), 0.0)
    return free.as_ceiling("free_outside")
