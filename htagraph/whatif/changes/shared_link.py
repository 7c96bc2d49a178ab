"""Shared link: whether transfers that overlap slow each other down."""

from __future__ import annotations

from dataclasses import replace

from htagraph.queries.weights import State

__all__ = ["shared_link"]


def shared_link(state: State, /, *, on: bool = True) -> State:
    """Return the state in which transfers that overlap share a link, or do not.

    How long each transfer takes alone stays; how long it takes follows from what else is under way at the same time.
    Without this change the recording decides: where the times of transfers fit better if overlapping ones share a link,
    they do; where it does not tell, transfers of host threads (gloo) share their host's network, those of devices do
    not, and the interval of the outcome covers both.

    Args:
        state: the weights so far.
        on: True for one link per host (or per device), False for transfers that do not slow each other down.
    """
    return replace(state, shared_link=bool(on))
