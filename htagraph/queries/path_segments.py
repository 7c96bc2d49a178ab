"""Segments of a path (which activity spends each stretch of it, and on what), and what bounds a job by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, sums_by
from htagraph.core.kinds import CATEGORIES, EDGES, ActivityKind, EdgeKind, GapKind, edges_with, of_kinds
from htagraph.core.naming import computes, has_loader_workers, is_memory_of_device, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.earlier_work import waits_for_earlier_work
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.attribution import in_data_loader
from htagraph.queries.device_record import DeviceRecord, device_record

if TYPE_CHECKING:
    from htagraph.queries.paths import CriticalPath

__all__ = [
    "CATEGORIES",
    "HOST_CATEGORIES",
    "LEAD_PERCENT",
    "Bound",
    "Segments",
    "bound_of",
    "leaders_of",
    "segments_of",
    "segments_of_paths",
    "totals",
]

HOST_CATEGORIES = ("host", "launch", "sync")
"""Categories of a path that are one cause, the host: what it runs, its launches, its returns from blocking calls."""
LEAD_PERCENT = 5.0
"""Points of the path by which the largest cause has to lead, or there is no single bound. Chosen: as in all findings,
less than a twentieth of the path is not worth a sentence, and the same job recorded again moves its shares by as much.
Doubled, 45 % beside 36 % are no bound."""
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
    GapKind.OTHER_WORK: "other_work",
}
"""Category of a gap, by its kind."""
_HOST, _LOADING = CATEGORIES.index("host"), CATEGORIES.index("data_loading")
_OUTSIDE = CATEGORIES.index("outside")
_ALLOCATOR = CATEGORIES.index("allocator")


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

    def only(self, chosen: npt.NDArray[np.bool_]) -> Segments:
        """Return some of them."""
        return Segments(**{name: column[chosen] for name, column in vars(self).items()})


def segments_of(graph: DependencyGraph, vertices: Array, into: Array, start: int) -> Segments:
    """Return the segments of a path, given its vertices and the edges into all but the first, from a moment (ns) on.

    A negative lag (by the device's clock, a call returned before the work that it waited for had ended) shortens the
    segment before it. Time from the moment until the first vertex is the head.
    """
    return segments_of_paths(graph, vertices, np.append(-1, into), np.full(len(vertices), start, np.int64))


def segments_of_paths(graph: DependencyGraph, vertices: Array, into: Array, start: Array) -> Segments:
    """Return the segments of several paths in the order of time; none begins before the end of the path before.

    Args:
        graph: the job.
        vertices: those of all paths, one path after the other.
        into: the edge into each vertex, -1 for the first one of each path.
        start: of each vertex, the moment from which on its path counts, ns.
    """
    edges, time = graph.edges, graph.time[vertices]
    is_first = into < 0
    bounds = np.repeat(start, 2)
    bounds[1::2] = time
    bounds[2::2] = np.where(is_first[1:], start[1:], time[:-1] + edges.lag[into[1:]])
    bounds = np.minimum.accumulate(np.maximum(bounds, np.repeat(start, 2))[::-1])[::-1]
    lengths = np.diff(bounds)
    lengths[1::2][is_first[1:]] = 0  # between two paths
    keep = np.flatnonzero(lengths)
    edge = np.repeat(into, 2)[1:][keep]
    into_vertex = vertices[(keep + 1) // 2]
    is_edge = edge >= 0
    target = into_vertex >> 1
    owner = np.full(len(keep), -1, np.int64)
    kind = np.full(len(keep), -1, np.int8)
    owner[is_edge] = edges.activity[edge[is_edge]]
    kind[is_edge] = edges.kind[edge[is_edge]]
    gap = np.where(keep % 2, GapKind.NONE, graph.gap_kind[into_vertex]).astype(np.int8)
    is_head = _behind_earlier_work(graph, edge[is_edge], gap[is_edge])
    gap[is_edge] = np.where(is_head, GapKind.TRACE_HEAD, gap[is_edge])
    activity = np.where(owner >= 0, owner, target)
    region = np.where(kind == EdgeKind.HOST_ORDER, owner, activity)
    # time without any event, before an activity begins, is time of what is around the activity
    is_before = (gap == GapKind.HOST_UNTRACED) & (into_vertex % 2 == 0) & (kind != EdgeKind.HOST_ORDER)
    around = graph.tree.parent[target]
    region = np.where(is_before, around, region)
    beside = of_kinds(kind, edges_with("starts")) & (owner >= 0)  # the owner ran until the next one started
    path = np.cumsum(is_first)[(keep + 1) // 2]
    return Segments(
        start=bounds[:-1][keep], length=lengths[keep], activity=activity,
        place=_places(graph, target, np.diff(path, prepend=0) != 0), target=target,
        region=region, edge=kind, gap=gap, category=_categories(graph, activity, kind, gap, region, beside),
    )  # fmt: skip


def _behind_earlier_work(graph: DependencyGraph, edge: Array, gap: Array) -> npt.NDArray[np.bool_]:
    """Return which segments, lags and not gaps, are waits for work begun before the recording."""
    waits = waits_for_earlier_work(graph.activities, graph.edges.take(edge))
    return waits & (gap == GapKind.NONE)


class Batches(NamedTuple):
    """The batches of a data loader with workers; none where both are 0."""

    waited: int
    """How many the path waits for."""
    total: int
    """How many there are."""


class Bound(NamedTuple):
    """What most of a critical path is spent on.

    `cause` is the cause with the largest share of the path, the head (before the first recorded moment) left out. A
    cause is a category of `CriticalPath.to_frame`; those of the host (``host``, ``launch``, ``sync``) are one, called
    ``host``. It is ``data_loading`` where a loader's worker processes set the pace: most of its batches are waited for,
    for at least 5 % of the path, or these waits are most of the path. The workers prepare the next batch while
    everything else on the path runs, so that a faster host or device only waits longer.
    """

    cause: str
    """What bounds the window; empty for a path without any time."""
    causes: Mapping[str, float]
    """Percent of the path by cause, the largest first; they sum to 100."""
    shares: Mapping[str, float]
    """Percent of the path by category, the largest first; they sum to 100."""
    ranks: Mapping[int, float]
    """Percent of the path by rank, the largest first."""
    by_workers: bool
    """Whether the worker processes of a data loader set the pace."""
    batches: Batches
    """Of a loader with workers: how many batches the path waits for, and how many there are; 0 and 0 for none."""
    unexplained: Mapping[str, float]
    """Percent of the path by kind of unexplained gap (a word of `GapKind`), the largest first; they sum to the share of
    the category ``gap``."""
    leaders: tuple[str, ...] = ()
    """The cause, and behind it the causes whose shares are as large but for `LEAD_PERCENT`; the head is none."""
    is_on_cpu: bool = False
    """Whether the time of the host is mostly that of operators which compute, as the job uses no device."""

    @property
    def unexplained_percent(self) -> float:
        """How much of the path no dependency explains, percent."""
        return self.shares.get("gap", 0.0)


def bound_of(path: CriticalPath, some: Segments | None = None) -> Bound:
    """Return what bounds the window of a critical path, by all of its segments or by some.

    Example:
        >>> import htagraph as hg
        >>> bound = bound_of(hg.critical_path(hg.load("data/demo")))
        >>> bound.cause, bound.by_workers
        ('computation', False)
    """
    parts = path.segments if some is None else some
    rank = path.graph.activities.rank[parts.place] if len(parts) else np.zeros(0, np.int64)
    shares = {CATEGORIES[code]: share for code, share in _shares(parts.category, parts.length).items()}
    gap = parts.category == CATEGORIES.index("gap")
    total = int(parts.length.sum())
    unexplained = _shares(parts.gap[gap], parts.length[gap], total)
    by_workers, batches = _waits_for_workers(path, parts, parts.category == CATEGORIES.index("data_loading"))
    causes = _by_cause(shares)
    named = [cause for cause in causes if cause != "head"] or list(causes)
    cause = "data_loading" if by_workers else named[0] if named else ""
    return Bound(
        cause=cause,
        causes=causes,
        shares=shares,
        ranks={int(key): share for key, share in _shares(rank, parts.length).items()},
        by_workers=by_workers,
        batches=batches,
        unexplained={GapKind(key).label: share for key, share in unexplained.items()},
        leaders=(cause,) if by_workers or not cause else leaders_of({key: causes[key] for key in named}),
        is_on_cpu=_is_on_cpu(path.graph, parts),
    )


def leaders_of(causes: Mapping[str, float]) -> tuple[str, ...]:
    """Return the causes that no other leads by `LEAD_PERCENT`, given percent of the path by cause, the largest first.

    Example:
        >>> leaders_of({"computation": 38.0, "host": 37.5, "memory": 10.0}), leaders_of({"host": 60.0, "memory": 40.0})
        (('computation', 'host'), ('host',))
    """
    most = max(causes.values(), default=0.0)
    return tuple(cause for cause, share in causes.items() if share > most - LEAD_PERCENT)


def _is_on_cpu(graph: DependencyGraph, parts: Segments) -> bool:
    """Return whether the time of the host is mostly that of operators which compute, in a job that uses no device."""
    if device_record(graph) != DeviceRecord.UNUSED:
        return False
    is_host = parts.category == _HOST
    is_computing = names_that(computes, graph.names)[graph.activities.name[parts.activity]]
    is_own = is_host & (parts.gap == GapKind.NONE) & is_computing
    return bool(parts.length[is_own].sum() > MOST * parts.length[is_host].sum())


def _places(graph: DependencyGraph, target: Array, is_first: Array) -> Array:
    """Return the targets, with JOINs replaced by the target before them on the same path."""
    is_join = (graph.activities.kind[target] == ActivityKind.JOIN) & ~is_first
    return target[np.maximum.accumulate(np.where(is_join, 0, np.arange(len(target))))]


def _categories(
    graph: DependencyGraph, activity: Array, edge: Array, gap: Array, region: Array, beside: Array
) -> Array:
    tables = (_OF_KIND, _OF_EDGE, _OF_GAP)
    body, lag, rest = (np.array([CATEGORIES.index(each[kind]) for kind in sorted(each)], np.int8) for each in tables)
    spent = np.where((edge == EdgeKind.BODY) | beside, body[graph.activities.kind[activity]], lag[edge])
    category = np.where(gap == GapKind.NONE, spent, rest[gap])
    asks = names_that(is_memory_of_device, graph.names)[graph.activities.name[activity]]
    category = np.where((category == _HOST) & (gap == GapKind.NONE) & asks, _ALLOCATOR, category)
    may_load = (category == _HOST) | (category == _OUTSIDE)
    return np.where(may_load & in_data_loader(graph, region), _LOADING, category).astype(np.int8)


def _by_cause(shares: Mapping[str, float]) -> dict[str, float]:
    """Return percent by cause, the largest first."""
    causes: dict[str, float] = {}
    for category, share in shares.items():
        cause = "host" if category in HOST_CATEGORIES else category
        causes[cause] = causes.get(cause, 0.0) + share
    return dict(sorted(causes.items(), key=lambda item: -item[1]))


def totals(codes: Array, length: Array) -> dict[int, int]:
    """Return the time of each code, ns, most first."""
    keys, sums = sums_by(codes, length)
    return {int(keys[at]): int(sums[at]) for at in np.argsort(-sums, kind="stable").tolist()}


def _shares(codes: Array, length: Array, total: int | None = None) -> dict[int, float]:
    """Return the percentage of each code, the largest first."""
    whole = max(1, int(length.sum()) if total is None else total)
    return {code: 100 * float(time) / whole for code, time in totals(codes, length).items()}


def _waits_for_workers(path: CriticalPath, parts: Segments, loading: Array) -> tuple[bool, Batches]:
    """Return whether a loader's workers set the pace of a path, and how many batches are waited for, of how many."""
    graph = path.graph
    acts = graph.activities
    owner = graph.edges.activity[graph.edges.kind == EdgeKind.DATALOADER]
    with_workers = names_that(has_loader_workers, graph.names)
    if not len(owner) or not with_workers[acts.name[owner]].any():
        return False, Batches(0, 0)
    waits = loading & with_workers[acts.name[parts.activity]]
    total = int(parts.length.sum())
    ranks = np.unique(acts.rank[parts.place[waits]])
    calls = np.unique(owner[with_workers[acts.name[owner]] & np.isin(acts.rank[owner], ranks)])
    inside = (graph.time[2 * calls] >= path.window[0]) & (graph.time[2 * calls + 1] <= path.window[1])
    left_out = np.setdiff1d(acts.step[path.segments.place], acts.step[parts.place])
    inside &= ~np.isin(acts.step[calls], left_out)
    # of several ranks with loaders the path follows one at a time
    expected = int(inside.sum()) / max(1, len(ranks))
    _, call = np.unique(parts.activity[waits], return_inverse=True)
    lasts = np.bincount(call.ravel(), parts.length[waits])
    waited = int((lasts >= LIMITS.small * total / max(1.0, expected)).sum())
    share = 100 * float(lasts.sum()) / max(1, total)
    several = expected >= 2  # one wait may be by chance
    often = several and share >= 100 * LIMITS.small and waited >= MOST * expected
    return often or share >= 100 * MOST, Batches(waited, round(expected))
