"""Shared link: whether transfers that overlap slow each other down."""

from __future__ import annotations

from dataclasses import replace

from htagraph.queries.weights import State
from htagraph.whatif.links import link_transfers

__all__ = ["shared_link"]


def shared_link(state: State, /, *, on: bool = True) -> State:
    """Return the state in which transfers that overlap share a link, or do not.

    The time that each transfer takes alone stays; the time that it takes among others follows from which other
    transfers are under way. Without this change the recording decides: transfers share a link if their recorded times
    fit better that way. If the recording does not show which fits better, transfers of host threads (gloo) share their
    host's network, transfers of devices share nothing, and the interval of the outcome covers both readings.

    Args:
        on: True for one link per host (or per device), False for transfers that do not slow each other down.
    """
    if not link_transfers(state.graph):
        return state.with_reason(
            "shared_link changes nothing: this job has no transfers between ranks that could share one"
        )
    return replace(state, shared_link=bool(on))
