"""The nodes and edges of a critical-path graph as columns, and the path of most weight through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Array

__all__ = ["DEPENDENCY", "KERNEL", "LAUNCH", "NOBODY", "OPERATOR", "SYNC", "Columns", "View", "heaviest_path"]


OPERATOR, DEPENDENCY, LAUNCH, KERNEL, SYNC = range(5)
"""The types of edges, in the order of `CPEdgeType`."""
NOBODY = -2
"""The owner of an edge whose time belongs to no event; -1 is HTA's number for time outside of any operator."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Edges in the order in which HTA would add them."""

    source: Array
    """Nodes."""
    target: Array
    kind: Array
    weight: Array
    """Time of each edge, ns."""
    owner: Array
    """Position in the file of the event that takes this time."""

    @staticmethod
    def of(source: Array, target: Array, kind: Array | int, weight: Array | int, owner: Array | int) -> Columns:
        """Return edges; a single number applies to all of them."""
        many = len(source)
        return Columns(source, target, *(np.broadcast_to(np.asarray(each), many) for each in (kind, weight, owner)))

    def take(self, rows: Array) -> Columns:
        """Return the edges in some rows."""
        return Columns(*(getattr(self, name)[rows] for name in Columns.__dataclass_fields__))

    @staticmethod
    def concatenate(parts: Sequence[Columns]) -> Columns:
        """Return the edges of all parts, one part after the other."""
        names = Columns.__dataclass_fields__
        return Columns(*(np.concatenate([getattr(part, name) for part in parts]).astype(np.int64) for name in names))


@dataclass(frozen=True, eq=False)
class View:
    """Nodes by (time, event), a node's number being its position; edges in the order in which HTA would add them."""

    event: Array
    """Position in the file of each node's event."""
    vertex: Array
    """The vertex of the dependency graph; -1 for cuda_sync events, which are no activities."""
    time: Array
    """ns on the rank's own clock."""
    is_start: Array
    is_blocking: Array
    kind: Array
    """ActivityKind of each node's event; that of device work for cuda_sync events."""
    edges: Columns


def heaviest_path(view: View, weight: Array) -> Array | None:
    """Return the nodes of the path with the largest sum of weights; None if there are no edges or they form a cycle.

    Ties are broken as in networkx: the edge that was added first, the end that comes first in its topological order.
    It is plain Python because loading numba would take longer.

    Args:
        view: nodes and edges.
        weight: of each edge, none negative.
    """
    edges = view.edges
    ends = np.stack((edges.source, edges.target), axis=1).ravel()
    nodes, first = np.unique(ends, return_index=True)
    nodes = nodes[np.argsort(first)]  # as they come into networkx's tables
    number = np.full(len(view.event), -1, np.int64)
    number[nodes] = np.arange(len(nodes))
    source, target = number[edges.source], number[edges.target]
    order = np.argsort(source, kind="stable")
    offsets = np.searchsorted(source[order], np.arange(len(nodes) + 1)).tolist()
    out = list(zip(target[order].tolist(), weight[order].tolist(), order.tolist(), strict=True))
    waiting = np.bincount(target, minlength=len(nodes)).tolist()
    best, into = [0] * len(nodes), [-1] * len(nodes)
    ready = [node for node, count in enumerate(waiting) if not count]
    for node in ready:
        reached = best[node]
        for after, lasts, edge in out[offsets[node] : offsets[node + 1]]:
            length, known = reached + lasts, into[after]
            if known < 0 or length > best[after] or (length == best[after] and edge < known):
                best[after], into[after] = length, edge
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if not ready or len(ready) < len(nodes):
        return None
    path, before = [max(ready, key=best.__getitem__)], source.tolist()
    while into[path[-1]] >= 0:
        path.append(before[into[path[-1]]])
    return nodes[path[::-1]]
