"""The pause of one rank, step by step, in which nothing was recorded and which its peers do not make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.intervals import intersection, length, union
from htagraph.core.kinds import OPERATORS, ActivityKind, GapKind, of_kinds
from htagraph.core.statistics import MOST
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.interruptions import LONG_NS

__all__ = ["SilentPause", "silent_pause"]

_NOWHERE = -1
"""The region of a stretch outside of all operators and annotations; no name has that code."""


class SilentPause(NamedTuple):
    """The pause of a rank at one place of its steps, longer than the pause of any peer at that place."""

    region: str
    """The operator or annotation around the pause; empty for none."""
    usual_us: float
    """The median over the steps, µs."""
    peers_us: float
    """The same median of the peer that pauses longest at that place, µs."""

    @property
    def excess_us(self) -> float:
        """The time by which the rank pauses longer than its peers, µs."""
        return self.usual_us - self.peers_us


class _SilentStretches(NamedTuple):
    """Stretches of host threads within steps that no event covers: an entry per stretch."""

    rank: Array
    step: Array
    region: Array
    """The code of the region's name, `_NOWHERE` for none."""
    begin_ns: Array
    length_ns: Array

    def chosen(self, mask: Mask) -> _SilentStretches:
        """Return the stretches of a mask."""
        return _SilentStretches(*(column[mask] for column in self))


def silent_pause(graph: DependencyGraph, rank: int) -> SilentPause | None:
    """Return the pause by which a rank exceeds its peers most; None where another thread works then, or for none.

    Nothing was recorded in it: a sleep, a lock, input or output, or code that records no event.

    Args:
        graph: the job.
        rank: the rank that makes its peers wait.

    Example:
        >>> import htagraph as hg
        >>> silent_pause(hg.load("data/demo"), 2) is None
        True
    """
    stretches = _silent_stretches(graph)
    is_long = stretches.length_ns >= LONG_NS
    long_stretches = stretches.chosen(is_long & (stretches.rank == rank))
    pauses = []
    for region in np.unique(long_stretches.region).tolist():
        in_region = long_stretches.chosen(long_stretches.region == region)
        if not _is_filled(graph, rank, in_region):
            of_all_ranks = stretches.chosen(stretches.region == region)
            pauses.append(_beside_peers(graph, rank, in_region, of_all_ranks))
    longest = max(pauses, key=lambda pause: pause.excess_us, default=None)
    return longest if longest and longest.excess_us > 0 else None


def _silent_stretches(graph: DependencyGraph) -> _SilentStretches:
    """Return the stretches of host threads, within steps, that no event covers."""
    acts = graph.activities
    is_silent = (graph.gap_kind == GapKind.HOST_UNTRACED) & (graph.gap > 0)
    vertex = np.flatnonzero(is_silent)
    activity = vertex >> 1
    is_before_end = vertex % 2 == 1
    around = np.where(is_before_end, activity, acts.parent[activity])
    gap_ns = graph.gap[vertex]
    begin_ns = graph.time[vertex] - gap_ns
    region = _region_names(graph, around)
    stretches = _SilentStretches(acts.rank[activity], acts.step[activity], region, begin_ns, gap_ns)
    return stretches.chosen(stretches.step >= 0)


def _region_names(graph: DependencyGraph, around: Array) -> Array:
    """Return the code of the name of the innermost operator or annotation around each place; `_NOWHERE` for none."""
    kind = graph.activities.kind
    is_region = of_kinds(kind, OPERATORS) | (kind == ActivityKind.ANNOTATION)
    is_inside = around >= 0
    region = np.full(len(around), -1, np.int64)
    region[is_inside] = graph.tree.nearest(is_region, around[is_inside])
    return np.where(region >= 0, graph.activities.name[region], _NOWHERE)


def _beside_peers(
    graph: DependencyGraph, rank: int, pauses: _SilentStretches, of_all_ranks: _SilentStretches
) -> SilentPause:
    """Return the pause of a rank in one region, and the time that its peers spend there without any event."""
    acts = graph.activities
    steps = np.unique(acts.step[acts.step >= 0])
    peers = [peer for peer in graph.ranks if peer != rank]
    of_peers = [_usual_us(of_all_ranks.chosen(of_all_ranks.rank == peer), steps) for peer in peers]
    region = int(pauses.region[0])
    name = "" if region == _NOWHERE else graph.names[region]
    return SilentPause(name, _usual_us(pauses, steps), max(of_peers, default=0.0))


def _usual_us(stretches: _SilentStretches, steps: Array) -> float:
    """Return the median over the steps of the time in some stretches of one rank, µs."""
    number = np.searchsorted(steps, stretches.step)
    by_step_ns = np.bincount(number, stretches.length_ns, len(steps))
    return float(np.median(by_step_ns)) / 1000


def _is_filled(graph: DependencyGraph, rank: int, pauses: _SilentStretches) -> bool:
    """Return whether another thread of the rank works for most of some pauses."""
    acts = graph.activities
    is_leaf = np.ones(len(acts), np.bool_)
    is_leaf[acts.parent[acts.parent >= 0]] = False
    is_work = is_leaf & ~acts.on_device & (acts.kind != ActivityKind.ANNOTATION)
    rows = np.flatnonzero(is_work & (acts.rank == rank))
    worked = union(acts.start[rows], acts.end[rows])
    paused = union(pauses.begin_ns, pauses.begin_ns + pauses.length_ns)
    return length(intersection(paused, worked)) > MOST * length(paused)
