"""Where the host waits for its device, and where longest: the operators, or calls, that block or ask in a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import distinct
from htagraph.core.kinds import DEVICE_WAITS, FRAMES, OPERATORS, EdgeKind, edges_with, of_kinds
from htagraph.core.naming import DEFAULT_NAMING, exact_glob, is_poll, names_like, names_that
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Blocking", "blocked_by_copies", "device_waits", "longest_blocking"]


@dataclass(frozen=True)
class Blocking:
    """Calls of one place that wait for the device."""

    name: str
    """The outermost operator around the calls, or the call itself where there is none."""
    criteria: dict[str, Any]
    """What selects them for `Scenario.remove_sync`."""
    count: int
    """How many calls wait."""
    blocked_ns: int
    """How long they take in total."""


def longest_blocking(graph: DependencyGraph) -> Blocking | None:
    """Return the operator, or call, in which the host waits longest for the device; None if it never waits.

    Example:
        >>> import htagraph as hg
        >>> longest_blocking(hg.load("data/demo")).name
        'aten::item'
    """
    acts = graph.activities
    calls, blocked = _waiting(graph)
    if not len(calls):
        return None
    place = _outermost(graph, calls)
    name = np.where(place >= 0, acts.name[place], acts.name[calls])
    distinct, number = np.unique(name, return_inverse=True)
    total = np.bincount(number.ravel(), blocked)
    most = int(total.argmax())
    rows = np.flatnonzero(number.ravel() == most)
    text = graph.names[int(distinct[most])]
    criterion = "op" if (place[rows] >= 0).all() else "name"
    return Blocking(text, {criterion: exact_glob(text)}, len(rows), int(total[most]))


def device_waits(graph: DependencyGraph, calls: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which edges are waits of some calls for the device.

    Those of a call that asks in a loop are also those of the Python in the loop. The mask of calls has one entry more
    than there are activities.
    """
    edges, asks = graph.edges, _asks(graph)
    out = of_kinds(edges.kind, DEVICE_WAITS) & calls[edges.target >> 1]
    return out | (asks & np.isin(edges.source, edges.source[out & asks])) if asks.any() else out


def blocked_by_copies(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which edges lead to the end of a call that copies to the device, which blocks without being asked to."""
    edges, out = graph.edges, graph.edges.kind == EdgeKind.MEMCPY_SYNC
    rows = np.flatnonzero(out)
    names = graph.activities.name[edges.source[rows] >> 1]
    out[rows] = names_like(DEFAULT_NAMING.to_device, graph.names, names)
    return out


def _asks(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which edges lead to no call that blocks: the host asks whether work is over, or a pause ends with it."""
    acts, edges = graph.activities, graph.edges
    asked = names_that(is_poll, graph.names)[acts.name] | of_kinds(acts.kind, FRAMES)
    return (edges.kind == EdgeKind.HOST_SYNC) & (asked[edges.target >> 1] | (edges.target & 1 == 0))


def _waiting(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (calls that wait for the device, the last of a loop or what ends a pause; how long each blocks, ns)."""
    acts, edges = graph.activities, graph.edges
    asks = _asks(graph)
    late = graph.time[edges.source] > graph.time[edges.target & ~1]  # else the work was over when the call began
    blocks = of_kinds(edges.kind, DEVICE_WAITS) & ~asks & ~blocked_by_copies(graph) & late
    calls = distinct(edges.target[blocks] >> 1, len(acts))
    asked = np.flatnonzero(asks)
    asked = asked[np.lexsort((graph.time[edges.target[asked]], edges.source[asked]))]
    first = np.flatnonzero(np.diff(edges.source[asked], prepend=-1))
    last = np.append(first[1:], len(asked))[: len(first)] - 1
    begin, end = (edges.target[asked[at]] for at in (first, last))
    lane, before = of_kinds(edges.kind, edges_with("lane")), np.zeros(graph.vertex_count, np.int64)
    before[edges.target[lane]] = edges.source[lane]
    lasts = graph.time[end] - graph.time[before[begin]]
    return np.concatenate((calls, end >> 1)), np.concatenate((acts.duration[calls], lasts))


def _outermost(graph: DependencyGraph, calls: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the outermost operator around each call, within any annotation; -1 for none."""
    is_operator = of_kinds(graph.activities.kind, OPERATORS)
    place = np.full(len(calls), -1, np.int64)
    at = graph.tree.nearest(is_operator, calls)
    while (at >= 0).any():
        place = np.where(at >= 0, at, place)
        above = graph.tree.parent[at]
        at = np.where((at >= 0) & (above >= 0) & is_operator[above], above, -1)
    return place
