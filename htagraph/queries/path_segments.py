"""Segments of a path: which activity spends each stretch of it, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import EDGES, ActivityKind, EdgeKind, GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import in_data_loader
from htagraph.queries.bound import CATEGORIES

__all__ = ["NO_EDGE", "Segments", "segments_of"]


_OF_KIND: dict[Any, str] = dict.fromkeys(ActivityKind, "host") | {
    ActivityKind.LAUNCH: "launch", ActivityKind.SYNC: "sync", ActivityKind.HOST_COMMUNICATION: "communication",
    ActivityKind.COMPUTATION: "computation", ActivityKind.COMMUNICATION: "communication",
    ActivityKind.MEMORY: "memory", ActivityKind.DEVICE_OTHER: "waiting",
}  # fmt: skip
"""Category of an activity's own work (BODY edges), by the activity's kind."""
_OF_EDGE = {kind: each.category for kind, each in EDGES.items()}
"""Category of the lag of every other edge, by the edge's kind."""
_OF_GAP: dict[Any, str] = dict.fromkeys(GapKind, "gap") | {
    GapKind.HOST_UNTRACED: "host",
    GapKind.DATA_WAIT: "data_loading",
    GapKind.TRACE_HEAD: "head",
}
"""Category of a gap, by its kind."""
NO_EDGE = -1
"""Where an array of edges or of their kinds has none."""
_HOST, _LOADING = CATEGORIES.index("host"), CATEGORIES.index("data_loading")


@dataclass(frozen=True, eq=False)
class Segments:
    """Stretches of a path in the order of time, none of length 0; each begins where the one before it ended."""

    start: npt.NDArray[np.int64]
    """ns on the common clock."""
    length: npt.NDArray[np.int64]
    """ns, positive."""
    activity: npt.NDArray[np.int64]
    """The activity that spends the time: the owner of the edge, else the activity that the edge leads to."""
    place: npt.NDArray[np.int64]
    """The activity whose rank and lane the segment is on: the one it leads to, or for a JOIN the one before."""
    target: npt.NDArray[np.int64]
    """The activity whose start or end it leads to."""
    region: npt.NDArray[np.int64]
    """The activity that operator and module are looked up for; -1 for host time outside all annotations."""
    edge: npt.NDArray[np.int8]
    """EdgeKind; -1 at the head, where nothing precedes."""
    gap: npt.NDArray[np.int8]
    """GapKind; NONE for the edge's lag."""
    category: npt.NDArray[np.int8]
    """Index into CATEGORIES."""

    def __len__(self) -> int:
        return len(self.start)


def segments_of(graph: DependencyGraph, vertices: Array, into: Array, start: int) -> Segments:
    """Return the segments of a path from the moment `start` on.

    A negative lag (by the device's clock, a call returned before the work that it waited for had ended) shortens the
    segment before it.

    Args:
        graph: the job.
        vertices: the vertices of the path.
        into: the edge to each vertex but the first.
        start: begin of the window, ns; earlier time is cut off, and the time until the first vertex is the head.
    """
    edges, time = graph.edges, graph.time[vertices]
    bounds = np.full(2 * len(vertices), start, np.int64)
    bounds[1::2], bounds[2::2] = time, time[:-1] + edges.lag[into]
    bounds = np.minimum.accumulate(np.maximum(bounds, start)[::-1])[::-1]
    keep = np.flatnonzero(np.diff(bounds))
    edge = np.concatenate(([NO_EDGE], np.repeat(into, 2)))[keep]
    into_vertex, known = vertices[(keep + 1) // 2], edge >= 0
    target, owner, kind = into_vertex >> 1, np.full(len(keep), -1, np.int64), np.full(len(keep), NO_EDGE, np.int8)
    owner[known], kind[known] = edges.activity[edge[known]], edges.kind[edge[known]]
    gap = np.where(keep % 2, GapKind.NONE, graph.gap_kind[into_vertex]).astype(np.int8)
    activity = np.where(owner >= 0, owner, target)
    region = np.where(kind == EdgeKind.HOST_ORDER, owner, activity)
    return Segments(
        start=bounds[keep], length=np.diff(bounds)[keep], activity=activity,
        place=_places(graph, target), target=target,
        region=region, edge=kind, gap=gap, category=_categories(graph, activity, kind, gap, region),
    )  # fmt: skip


def _places(graph: DependencyGraph, target: Array) -> Array:
    """Return the targets, with JOINs replaced by the target before them."""
    is_join = graph.activities.kind[target] == ActivityKind.JOIN
    return target[np.maximum.accumulate(np.where(is_join, 0, np.arange(len(target))))]


def _categories(graph: DependencyGraph, activity: Array, edge: Array, gap: Array, region: Array) -> Array:
    tables = (_OF_KIND, _OF_EDGE, _OF_GAP)
    body, lag, rest = (np.array([CATEGORIES.index(each[kind]) for kind in sorted(each)], np.int8) for each in tables)
    spent = np.where(edge == EdgeKind.BODY, body[graph.activities.kind[activity]], lag[edge])
    category = np.where(gap == GapKind.NONE, spent, rest[gap])
    return np.where((category == _HOST) & in_data_loader(graph, region), _LOADING, category).astype(np.int8)
