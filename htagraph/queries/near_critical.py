"""Ways beside a critical path: what leaves it and comes back later, and would be critical if it were longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.graph.dependency_graph import DependencyGraph

if TYPE_CHECKING:
    from htagraph.queries.paths import CriticalPath

__all__ = ["Way", "ways_beside"]

Array: TypeAlias = npt.NDArray[Any]
_NO_EDGE = -1


@dataclass(frozen=True)
class Way:
    """A way beside the critical path, as `CriticalPath.near` defines it."""

    vertices: Array
    """In the order of time; where it leaves the path, the first is the path's."""
    into: Array
    """The edge to each of them but the first, and the one that leads back to the path, if any."""
    slack: int
    """By how many ns longer it may get before it is critical."""
    returns: int
    """The path's vertex; -1 for an end of the window."""


def ways_beside(path: CriticalPath, count: int, least: int = 0) -> list[Way]:
    """Return at most `count` ways beside a critical path with at least `least` ns of work, the least slack first."""
    from htagraph.core import traverse

    graph, edges, (start, end) = path.graph, path.graph.edges, path.window
    time, before = graph.time, graph.binding.copy()
    weight = np.append(_work(graph), 0)[before]  # of -1 nothing
    on_path = np.zeros(graph.vertex_count, np.bool_)
    on_path[path.vertices] = True
    back = (on_path & (time > start))[edges.target]
    back[path.edges] = False
    merging, ending = np.flatnonzero(back), path.ends[~on_path[path.ends]]
    late = (time - graph.gap)[edges.target[merging]] - time[edges.source[merging]] - edges.lag[merging]
    slack = np.concatenate((late, end - time[ending]))
    order = np.argsort(slack, kind="stable")
    candidates = np.concatenate((edges.source[merging], ending))[order].astype(np.int64)
    own = np.concatenate((_work(graph)[merging], np.zeros(len(ending), np.int64)))[order]
    edge = np.concatenate((merging, np.full(len(ending), _NO_EDGE)))[order]
    before[on_path | (time <= start)] = _NO_EDGE
    ways = []
    for i in traverse.detours(before, edges.source, weight, on_path, candidates, own, max(least, 1), count):
        vertices = traverse.walk_back(before, edges.source, time, int(candidates[i]), start)
        into = np.concatenate((before[vertices[1:]], edge[i : i + 1][edge[i : i + 1] >= 0]))
        returns = int(edges.target[edge[i]]) if edge[i] >= 0 else -1
        ways.append(Way(vertices, into.astype(np.int64), int(slack[order[i]]), returns))
    return ways


def _work(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the lag of each edge whose lag is somebody's work, else 0, ns."""
    return np.where(graph.edges.activity >= 0, graph.edges.lag, 0)
