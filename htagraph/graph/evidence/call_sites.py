"""Call sites: which calls of a thread come from the same place in the program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.graph.activities import Activities
from htagraph.graph.tolerances import LIMITS

__all__ = ["grouped", "mixed", "owners"]

_PLACES = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.HOST_COMMUNICATION)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: the multiplier of Fibonacci hashing (Knuth, volume 3, 6.4)."""


def mixed(*columns: Array) -> Array:
    """Return one number per row, equal where all columns are equal (and, with odds of 2^-64 a pair, only there)."""
    out = np.full(len(columns[0]), 7, np.uint64)
    for column in columns:
        out = (out ^ (column.astype(np.uint64) + np.uint64(1))) * _MULTIPLIER
        out ^= out >> np.uint64(29)
    return out


def grouped(key: Array) -> Iterator[Array]:
    """Yield the rows of each value of a key, ascending; values in no particular order.

    Example:
        >>> [rows.tolist() for rows in grouped(np.array([5, 3, 5]))]
        [[1], [0, 2]]
    """
    order = np.argsort(key, kind="stable")
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def owners(acts: Activities, row: Array) -> tuple[Array, Array]:
    """Return (innermost operator or annotation around each call or -1, a hash of the names of all that enclose it).

    Python frames do not count, because their names differ between instances of one place (modules, line numbers). Steps
    do not count either, nor do calls, which seem to enclose each other in files of whole µs.
    """
    place = of_kinds(acts.kind, _PLACES)
    at = acts.parent[row].astype(np.int64)
    owner = np.full(len(at), -1, np.int64)
    path = acts.name[row].astype(np.uint64)
    rows = np.flatnonzero(at >= 0)
    for _ in range(LIMITS.depth):
        if not len(rows):
            break
        here = at[rows]
        counts = place[here]
        owner[rows] = np.where((owner[rows] < 0) & counts, here, owner[rows])
        path[rows] = np.where(counts, mixed(path[rows], acts.name[here]), path[rows])
        at[rows] = acts.parent[here]
        rows = rows[at[rows] >= 0]
    return owner, path
