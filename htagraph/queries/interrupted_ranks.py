"""How the interruptions of ranks lie in time: in turn, at the same moments, or independently of each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.intervals import union

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.interrupted import Interruptions

__all__ = ["InterruptedRanks", "interrupted_ranks"]

_MIN_TOGETHER = 0.6
"""Share of the time in which as many ranks go on, or of the interrupted time in which all are, for a pattern to be one.
Chosen: more than half, with room for interruptions that are too short to be found. It cannot be doubled; at 1, no real
recording has a pattern."""
_MIN_RATIO = 1.5
"""How many times the share that ranks interrupted independently would have. Chosen: the share itself is known to a few
percent. Doubled, eight ranks on two cores, which go on two by two 2.7 times as often as by chance, have no pattern."""


@dataclass(frozen=True)
class InterruptedRanks:
    """How the interruptions of ranks lie in time."""

    pattern: Literal["in turn", "together", ""]
    """Whether always the same number of ranks goes on, or all are interrupted at the same moments; empty for neither,
    for one rank, and where clocks of ranks are unknown."""
    going: int
    """How many ranks most often go on at a time."""
    share: float
    """Of the time from the first to the last moment that all ranks recorded: in which so many go on; for interruptions
    at the same moments, of the time in which any rank is interrupted: in which all are."""
    by_chance: float
    """What `share` would be if each rank were interrupted independently of the others."""
    shares: dict[int, float]
    """Share of the time from its first to its last activity in which each rank is interrupted, on any thread."""


def interrupted_ranks(graph: DependencyGraph, found: Interruptions) -> InterruptedRanks:
    """Return how much of their time ranks are interrupted, and whether in turn or together.

    Args:
        graph: the job.
        found: its interruptions.

    Example:
        >>> import htagraph as hg
        >>> from htagraph.queries.interrupted import interrupted
        >>> graph = hg.load("data/demo")
        >>> interrupted_ranks(graph, interrupted(graph)).pattern
        ''
    """
    acts, end = graph.activities, graph.time[found.vertex]
    rank = acts.rank[found.vertex >> 1]
    spans, unions = {}, {}
    for one in graph.ranks:
        rows = acts.of_rank(one)
        time = graph.time[2 * rows.start : 2 * rows.stop]
        spans[one] = (int(time.min()), int(time.max()))
        mine = rank == one
        unions[one] = np.stack(union(end[mine] - found.length[mine], end[mine]), axis=1)
    shares = {
        one: float((stops[:, 1] - stops[:, 0]).sum()) / max(1, spans[one][1] - spans[one][0])
        for one, stops in unions.items()
    }
    nothing = InterruptedRanks("", 0, 0.0, 0.0, shares)
    known = len(unions) > 1 and len(found) and all(clock.uncertainty_ns >= 0 for clock in graph.clocks)
    begin, stop = max(first for first, _ in spans.values()), min(last for _, last in spans.values())
    if not known or stop <= begin:
        return nothing
    return _pattern(_stopped(list(unions.values()), begin, stop), shares) or nothing


def _stopped(unions: list[Array], begin: int, stop: int) -> tuple[Array, Array]:
    """Return (which ranks are interrupted in each part of a window, a row per rank; the length of each part, ns)."""
    cut = [np.clip(stops, begin, stop) for stops in unions]
    marks = np.unique(np.concatenate([np.array([begin, stop]), *(stops.ravel() for stops in cut)]))
    rows = []
    for stops in cut:
        change = np.zeros(len(marks), np.int64)
        np.add.at(change, np.searchsorted(marks, stops[:, 0]), 1)
        np.add.at(change, np.searchsorted(marks, stops[:, 1]), -1)
        rows.append(np.cumsum(change)[:-1] > 0)
    return np.array(rows), np.diff(marks)


def _pattern(parts: tuple[Array, Array], shares: dict[int, float]) -> InterruptedRanks | None:
    stopped, length = parts
    whole, ranks = float(length.sum()), len(stopped)
    observed = np.bincount(ranks - stopped.sum(axis=0), length, ranks + 1) / whole
    each = (stopped @ length) / whole
    expected = np.ones(1)  # of how many ranks go on, were each interrupted independently
    for share in each:
        expected = np.convolve(expected, (share, 1 - share))
    any_stops, by_chance = 1 - observed[ranks], 1 - expected[ranks]
    together = float(observed[0] / any_stops) if any_stops > 0 else 0.0
    chance = float(expected[0] / by_chance) if by_chance > 0 else 1.0
    if together >= max(_MIN_TOGETHER, _MIN_RATIO * chance):
        return InterruptedRanks("together", 0, together, chance, shares)
    going = 1 + int(observed[1:ranks].argmax())
    share, chance = float(observed[going]), float(expected[going])
    if share >= max(_MIN_TOGETHER, _MIN_RATIO * chance):
        return InterruptedRanks("in turn", going, share, chance, shares)
    return None
