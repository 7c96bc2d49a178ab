"""All-to-alls in which some rank has a far larger message than the mean of its group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Ints, run_starts
from htagraph.core.statistics import STANDS_OUT
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import lacks_members

__all__ = ["UnevenExchange", "uneven_exchange"]

_ALL_TO_ALL = "all_to_all"
"""The operation in which each rank may have a message of another size."""


@dataclass(frozen=True)
class UnevenExchange:
    """All-to-alls whose messages differ by rank."""

    activity: Ints
    """The members with the largest message of each uneven all-to-all, the most uneven first."""
    ratio: float
    """How many times the mean of its group the largest message has: the median of the uneven all-to-alls."""
    most_ratio: float
    """The ratio of the most uneven all-to-all."""
    uneven: int
    """All-to-alls with a message of at least 1.5 times the mean."""
    count: int
    """All-to-alls whose sizes are known."""
    ranks: tuple[int, ...]
    """The ranks with the largest messages, the rank that has a largest message most often first."""
    time_ns: int
    """How long the uneven all-to-alls take on the rank where they take longest, with waits, ns."""


def uneven_exchange(graph: DependencyGraph) -> UnevenExchange | None:
    """Return the all-to-alls whose messages differ by rank; None where none does, or no size is known.

    The size of a message is the size that a rank sends, or the size that it receives, the larger one.

    Example:
        >>> import htagraph as hg
        >>> uneven_exchange(hg.load("data/demo")) is None
        True
    """
    matches = graph.matches
    if matches is None or _ALL_TO_ALL not in matches.op:
        return None
    waits = graph.waits
    is_exchange = np.array([op == _ALL_TO_ALL for op in matches.op], np.bool_)
    rows = np.flatnonzero((waits.collective >= 0) & ~lacks_members(graph)[waits.activity])
    rows = rows[is_exchange[waits.collective[rows]]]
    if not len(rows):
        return None
    order = np.lexsort((-waits.bytes[rows], waits.collective[rows]))
    rows = rows[order]
    first = run_starts(waits.collective[rows])
    size = np.maximum(waits.bytes[rows], 0)
    is_known = np.minimum.reduceat(waits.bytes[rows], first) >= 0
    total = np.add.reduceat(size, first)
    members = np.diff(np.append(first, len(rows)))
    is_known &= (members > 1) & (total > 0)
    ratio = size[first] * members / np.maximum(total, 1)
    is_uneven = is_known & (ratio >= STANDS_OUT)
    if not is_uneven.any():
        return None
    largest = rows[first[is_uneven]]
    ratios = ratio[is_uneven]
    time = (waits.wait + waits.transfer)[rows]
    counted = np.repeat(is_uneven, members)
    time_by_rank = np.bincount(waits.rank[rows[counted]], time[counted])
    ranks, often = np.unique(waits.rank[largest], return_counts=True)
    most_often = np.argsort(-often, kind="stable")
    most_uneven = np.argsort(-ratios, kind="stable")
    return UnevenExchange(
        activity=waits.activity[largest[most_uneven]],
        ratio=float(np.median(ratios)),
        most_ratio=float(ratios.max()),
        uneven=int(is_uneven.sum()),
        count=int(is_known.sum()),
        ranks=tuple(ranks[most_often].tolist()),
        time_ns=int(time_by_rank.max()),
    )
