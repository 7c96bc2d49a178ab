"""Near-critical paths: they leave the critical path, return to it later, and are critical once they take longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.dependency_graph import DependencyGraph

if TYPE_CHECKING:
    from htagraph.queries.paths import CriticalPath

__all__ = ["Way", "ways_beside"]

_NO_EDGE = -1
"""Where an array of edges has none."""


@dataclass(frozen=True)
class Way:
    """A near-critical path, as `CriticalPath.near` defines it."""

    vertices: Array
    """Its vertices in the order of time; the first is on the critical path where it leaves that."""
    into: Array
    """The edge to each vertex but the first, and the one that returns to the critical path, if any."""
    slack: int
    """How much longer it may take before it is critical, ns."""
    returns: int
    """The vertex of the critical path where it returns; -1 if it ends at an end of the window."""


def ways_beside(path: CriticalPath, count: int, least: int = 0) -> list[Way]:
    """Return at most `count` near-critical paths with at least `least` ns of work, least slack first.

    Args:
        path: the critical path.
        count: how many at most.
        least: the least work on a path that counts, ns; paths without any never do.
    """
    from htagraph.core import traverse

    graph, edges, (start, end) = path.graph, path.graph.edges, path.window
    time, before = graph.time, graph.binding.copy()
    weight = np.append(_work(graph), 0)[before]  # 0 where no edge enters
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
    """Return the lag of each edge that belongs to an activity, ns; 0 for other edges."""
    return np.where(graph.edges.activity >= 0, graph.edges.lag, 0)
