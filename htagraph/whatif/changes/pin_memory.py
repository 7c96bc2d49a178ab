"""Pinned memory: pageable copies run at the rate of a link, and none to the device blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import DEVICE_WAITS, ActivityKind, of_kinds
from htagraph.core.naming import DEFAULT_NAMING, names_like
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.host_time import blocked_by_copies
from htagraph.queries.weights import State, edges_of, weighed, without_waits

__all__ = ["pin_memory"]

_LEAST_RATE: Final = 12.0
"""Bytes/ns that any link moves to or from pinned memory: PCIe 3.0 with 16 lanes.

Doubled, copies that a slow link limits are predicted to take half of the time.
"""
_LARGE_BYTES: Final = 1_000_000
"""Copies from this size on show the rate of a link; small copies mostly show the time that any copy takes.

Chosen. Doubled, a job whose pinned copies have 1 to 2 MB shows no rate.
"""


def pin_memory(state: State) -> State:
    """Return the state in which copies use pinned memory, and calls do not wait for copies to the device.

    A copy takes no longer than at the fastest rate of pinned memory that the recording has for the direction, or at
    the rate of PCIe 3.0. A copy that is as fast already takes as long as before; the call does not block. Calls
    still wait for copies to the host, as the result is read later.

    Raises:
        SelectionError: no copy uses pageable memory.
    """
    graph = state.graph
    acts = graph.activities
    is_copy = acts.on_device & (acts.kind == ActivityKind.MEMORY)
    copies = np.flatnonzero(is_copy)
    name = acts.name[copies]
    is_pageable = names_like(DEFAULT_NAMING.pageable, graph.names, name)
    to_device = names_like(DEFAULT_NAMING.to_device, graph.names, name)
    if not is_pageable.any():
        msg = "no copy from or to pageable memory was recorded"
        raise SelectionError(msg)
    took = acts.duration.copy()
    for direction in (to_device, ~to_device):
        pageable = copies[direction & is_pageable]
        pinned = copies[direction & ~is_pageable]
        took[pageable] = _pinned_time(graph, pageable, pinned)
    is_changed = marked(copies[is_pageable], len(acts) + 1)
    rows = edges_of(graph, is_changed)
    owner = graph.edges.activity[rows]
    lag = np.minimum(state.lag[rows], took[owner])
    faster = weighed(state, rows, lag)
    return _unblocked(faster, copies[is_pageable & to_device])


def _pinned_time(graph: DependencyGraph, copies: Ints, pinned: Ints) -> Ints:
    """Return how long copies take in pinned memory, ns.

    Args:
        graph: the job.
        copies: copies of pageable memory in one direction.
        pinned: recorded copies of pinned memory in the same direction.
    """
    acts = graph.activities
    size = acts.arg("bytes")
    large = pinned[size[pinned] >= _LARGE_BYTES]
    lasts = np.maximum(acts.duration[large], 1)
    recorded_rate = (size[large] / lasts).max(initial=0.0)
    rate = max(_LEAST_RATE, recorded_rate)
    every = np.concatenate((copies, pinned))
    longest = np.iinfo(np.int64).max
    least = acts.duration[every].min(initial=longest)
    at_rate = np.rint(size[copies] / rate).astype(np.int64)
    now = acts.duration[copies]
    faster = np.minimum(now, at_rate + least)
    return np.where(size[copies] > 0, faster, now)


def _unblocked(state: State, copies: Ints) -> State:
    """Return the state in which no call waits for some copies: neither the call of a copy nor the operator around."""
    graph = state.graph
    acts = graph.activities
    edges = graph.edges
    calls = acts.cause[copies]
    around = graph.tree.parent[calls[calls >= 0]]
    operators = around[around >= 0]
    operators = operators[acts.kind[operators] == ActivityKind.OP]
    call = edges.target >> 1
    is_inside = marked(operators, len(acts) + 1)[graph.tree.parent[call]]
    is_of_copies = marked(copies, len(acts))[edges.source >> 1]
    blocks: Mask = blocked_by_copies(graph) & is_of_copies
    blocks |= of_kinds(edges.kind, DEVICE_WAITS) & is_inside
    unblocked = np.unique(call[blocks])
    return replace(
        without_waits(state, blocks),
        unblocked=(*state.unblocked, unblocked),
    )
