"""No interruptions: host code that something outside of it stopped takes what it usually takes."""

from __future__ import annotations

from htagraph.core.errors import SelectionError
from htagraph.queries.interruptions import interrupted, interruption_time
from htagraph.queries.weights import State, with_factor

__all__ = ["no_interruptions"]


def no_interruptions(state: State) -> State:
    """Return the state in which nothing interrupts host threads; see `htagraph.interruptions`.

    Each interrupted slice of an activity takes as long as the same code usually does, and interrupted code between
    activities takes no time. The pause of a stream that waited for work of an interrupted launch takes no time either;
    see `queries.interruptions`.

    Raises:
        SelectionError: no host thread was interrupted.
    """
    if not len(interrupted(state.graph)):
        msg = "host code was not interrupted: what took long took long where it usually does"
        raise SelectionError(msg)
    return with_factor(state, interruption_time(state.graph), 0.0)
