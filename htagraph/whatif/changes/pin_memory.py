"""Pinned memory: copies from and to memory that may be paged out run at the rate of a link, and none blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import DEVICE_WAITS, ActivityKind, of_kinds
from htagraph.core.naming import DEFAULT_NAMING, names_like
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.host_time import blocked_by_copies
from htagraph.queries.weights import State, edges_of, weighed, without_waits

__all__ = ["pin_memory"]

_LEAST_RATE: Final = 12.0
"""Bytes/ns that any link moves to or from pinned memory: PCIe 3.0 with 16 lanes. Doubled, copies that a slow link
limits are predicted to take half of their time."""
_LARGE_BYTES: Final = 1_000_000
"""Copies from this size on show the rate of a link; smaller ones mostly show the time that any copy takes. Doubled, a
job whose pinned copies have 1 to 2 MB shows no rate."""


def pin_memory(state: State) -> State:
    """Return the state in which copies use pinned memory, and calls do not wait for copies to the device.

    A copy takes no longer than at the fastest rate of pinned memory that the recording has for its direction, or at
    that of PCIe 3.0. A copy that is as fast already takes as long as before: only its call does not block. Calls still
    wait for copies to the host, whose result is read later.

    Raises:
        SelectionError: no copy uses memory that may be paged out.
    """
    graph = state.graph
    acts = graph.activities
    copies = np.flatnonzero(acts.on_device & (acts.kind == ActivityKind.MEMORY))
    is_pageable = names_like(DEFAULT_NAMING.pageable, graph.names, acts.name[copies])
    if not is_pageable.any():
        msg = "pin_memory: no copy from or to pageable memory was recorded"
        raise SelectionError(msg)
    to_device = names_like(DEFAULT_NAMING.to_device, graph.names, acts.name[copies])
    took = acts.duration.copy()
    for direction in (to_device, ~to_device):
        slow = copies[direction & is_pageable]
        took[slow] = _pinned_time(graph, slow, copies[direction & ~is_pageable])
    rows = edges_of(graph, marked(copies[is_pageable], len(acts) + 1))
    faster = np.minimum(state.lag[rows], took[graph.edges.activity[rows]])
    blocks = _blocks(graph, copies[is_pageable & to_device])
    return _unblocked(weighed(state, rows, faster), blocks)


def _pinned_time(graph: DependencyGraph, copies: Ints, pinned: Ints) -> Array:
    """Return how long copies take in pinned memory, ns; `pinned` are recorded copies in the same direction."""
    acts = graph.activities
    size = acts.arg("bytes")
    large = pinned[size[pinned] >= _LARGE_BYTES]
    rates = size[large] / np.maximum(acts.duration[large], 1)
    rate = max(_LEAST_RATE, rates.max(initial=0.0))
    least = acts.duration[np.concatenate((copies, pinned))].min(initial=np.iinfo(np.int64).max)
    at_rate = np.rint(size[copies] / rate).astype(np.int64) + least
    return np.where(size[copies] > 0, np.minimum(acts.duration[copies], at_rate), acts.duration[copies])


def _blocks(graph: DependencyGraph, copies: Ints) -> Mask:
    """Return by which edges hosts wait for copies: in the calls for them, or in calls of the operators that copy."""
    acts = graph.activities
    edges = graph.edges
    calls = acts.cause[copies]
    around = graph.tree.parent[calls[calls >= 0]]
    copying = around[around >= 0]
    copying = copying[acts.kind[copying] == ActivityKind.OP]
    inside = marked(copying, len(acts) + 1)[graph.tree.parent[edges.target >> 1]]
    of_copies = blocked_by_copies(graph) & marked(copies, len(acts))[edges.source >> 1]
    return of_copies | (of_kinds(edges.kind, DEVICE_WAITS) & inside)


def _unblocked(state: State, blocks: Mask) -> State:
    """Return the state in which calls do not wait for their copies."""
    calls = np.unique(state.graph.edges.target[blocks] >> 1)
    return replace(without_waits(state, blocks), unblocked=(*state.unblocked, calls))
