"""Which sequences of collectives of different ranks are compared with each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from htagraph.graph.construction.matching.sequence_alignment import Track
from htagraph.graph.tolerances import LIMITS

__all__ = ["pairs"]

_MAX_PAIRS: Final = 3000
"""Pairs of sequences in a pool up to which all are compared, above just neighbours. Chosen for time. Doubled, it
takes twice as long."""
_NEIGHBOURS: Final = 6
"""Sequences that each one is compared with in large pools, those that run most parallel. Chosen for time. Doubled, it
takes twice as long."""


def pairs(tracks: Sequence[Track]) -> list[tuple[Track, Track]]:
    """Return the pairs of tracks of one pool and different ranks that are to be compared."""
    pools: dict[int, list[Track]] = {}
    for track in tracks:
        pools.setdefault(track.pool, []).append(track)
    candidates = []
    for pool in pools.values():
        pool.sort(key=lambda track: (-len(track), track.rank))
        if pool[0].certain and len(pool) > LIMITS.in_a_row:
            candidates += [(pool[0], other) for other in pool[1:]] + list(pairwise(pool[1:]))
        elif len(pool) * (len(pool) - 1) // 2 > _MAX_PAIRS:
            candidates += _neighbours(pool)
        else:
            candidates += [(a, b) for i, a in enumerate(pool) for b in pool[i + 1 :]]
    return [(a, b) for a, b in candidates if a.rank != b.rank and (a.way == 0 or a.way != b.way)]


def _neighbours(pool: list[Track]) -> list[tuple[Track, Track]]:
    """Return for each of many tracks those whose last ends run most parallel to its own."""
    count = min(LIMITS.tried, *(len(track) for track in pool))
    ends = np.array([track.end[-count:] for track in pool])
    rank, way = (np.array([getattr(track, what) for track in pool]) for what in ("rank", "way"))
    near: set[tuple[int, int]] = set()
    for i in range(len(pool)):
        difference = ends - ends[i]
        difference -= np.median(difference, axis=1)[:, None]
        spread = np.median(np.abs(difference), axis=1)
        spread[(rank == rank[i]) | ((way == way[i]) & (way != 0))] = np.inf
        near |= {(min(i, int(j)), max(i, int(j))) for j in np.argsort(spread)[:_NEIGHBOURS]}
    return [(pool[i], pool[j]) for i, j in sorted(near)]
