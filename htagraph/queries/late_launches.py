"""Why the host launches too late: what it does while its device waits for it."""

from __future__ import annotations

import numpy as np

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.pauses import CAUSES
from htagraph.queries.paths import CATEGORIES, path_to

__all__ = ["LATE_REASONS", "LONG_PAUSE_NS", "late_reason"]

LATE_REASONS = ("loader", "ranks", "pauses", "launches", "few")
"""What the host does while its device waits: it waits for its data loader; for other ranks or for transfers; it is busy
or pauses for long with something else; it works on many small things; or on few."""
LONG_PAUSE_NS = 1_000_000
"""ns; a single activity or pause of the host this long is no cost of launching. Chosen: dispatch of an operator takes
some 10 µs. Doubled, CUDA graphs are advised where pauses of 1 to 2 ms dominate."""
_MAX_WAITS = 24
"""How many waits of a device are looked into, the longest. Chosen: where few pauses are the reason, they are most of
the time. Doubled, a summary takes a few ms longer."""
_MANY = 30
"""Waits of a device; fewer are no sign of many small pieces of work. Chosen: a training step has hundreds. Doubled, a
recording of 30 to 60 kernels is not advised to use CUDA graphs."""
_MIN_LOOKED_INTO = 0.5
"""Share of the time in which a device waits for its host; where the longest waits are less of it, the rest are many
short ones, and these are the reason. Chosen: the larger part. Doubled, it is always many small things."""


def late_reason(graph: DependencyGraph, rank: int) -> str:
    """Return what the host of a rank does most while its device waits for a launch; one of `LATE_REASONS`, "" for none.

    Each wait is explained by the path to the kernel that ends it: what had to end before it could begin.

    Args:
        graph: the job.
        rank: the rank.

    Example:
        >>> import htagraph as hg
        >>> late_reason(hg.load("data/demo"), 0)
        'loader'
    """
    time = np.zeros(len(LATE_REASONS) - 1)
    waits, share, count = _waits(graph, rank)
    if waits and share < _MIN_LOOKED_INTO:
        return "launches"
    for work, since in waits:
        segments = path_to(graph, np.array([2 * work]), since).segments
        elsewhere = graph.activities.rank[segments.place] != rank
        category = segments.category
        whole = np.bincount(segments.activity, segments.length)[segments.activity]  # slices of one activity are one
        long = np.where(segments.gap != 0, segments.length, whole) >= LONG_PAUSE_NS
        of_ranks = elsewhere | (category == CATEGORIES.index("communication"))
        reason = np.select([category == CATEGORIES.index("data_loading"), of_ranks, long], [0, 1, 2], 3)
        time += np.bincount(reason, segments.length, len(time))
    if not time.any():
        return ""
    reason_of_most = LATE_REASONS[int(time.argmax())]
    return "few" if reason_of_most == "launches" and count < _MANY else reason_of_most


def _waits(graph: DependencyGraph, rank: int) -> tuple[list[tuple[int, int]], float, int]:
    """Return a rank's longest waits, their share of the time of all its waits, and how many it has.

    A wait is (the kernel or copy that ends it, since when the device was idle, ns).
    """
    pauses = graph.device_pauses
    of_rank = (pauses.places[pauses.place, 0] == rank) & (pauses.length > 0)
    waits = np.flatnonzero(of_rank & (pauses.causes() == CAUSES.index("host_wait")))
    total, count = int(pauses.length[waits].sum()), len(waits)
    waits = waits[np.argsort(-pauses.length[waits], kind="stable")][:_MAX_WAITS]
    share = int(pauses.length[waits].sum()) / max(1, total)
    return list(zip(pauses.after[waits].tolist(), pauses.begin[waits].tolist(), strict=True)), share, count
