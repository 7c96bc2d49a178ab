"""Where the host waits longest for its device: the operators, or calls, whose synchronizations take the most time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import DEVICE_WAITS, OPERATORS
from htagraph.core.naming import exact_glob

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Blocking", "longest_blocking"]


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

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> longest_blocking(hg.load("data/demo")).name
        'aten::item'
    """
    acts, edges = graph.activities, graph.edges
    calls = np.unique(edges.target[np.isin(edges.kind, DEVICE_WAITS)] >> 1)
    if not len(calls):
        return None
    place = _outermost(graph, calls)
    name = np.where(place >= 0, acts.name[place], acts.name[calls])
    distinct, number = np.unique(name, return_inverse=True)
    total = np.bincount(number.ravel(), acts.duration[calls])
    most = int(total.argmax())
    rows = np.flatnonzero(number.ravel() == most)
    text = graph.names[int(distinct[most])]
    criterion = "op" if (place[rows] >= 0).all() else "name"
    return Blocking(text, {criterion: exact_glob(text)}, len(rows), int(total[most]))


def _outermost(graph: DependencyGraph, calls: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the outermost operator around each call, within any annotation; -1 for none."""
    is_operator = np.isin(graph.activities.kind, OPERATORS)
    place = np.full(len(calls), -1, np.int64)
    at = graph.tree.nearest(is_operator, calls)
    while (at >= 0).any():
        place = np.where(at >= 0, at, place)
        above = graph.tree.parent[at]
        at = np.where((at >= 0) & (above >= 0) & is_operator[above], above, -1)
    return place
