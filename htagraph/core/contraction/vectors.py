"""Weights that are vectors, and which of two is at least as long whatever the factors are. Compiled by numba.

The first component of a vector counts as it is, every other one times a factor that is chosen later, from 0 to the
bound of that component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["UNBOUNDED", "Weights", "add", "copy", "cover_together", "covers", "sparse"]


UNBOUNDED = -1
"""The bound of a component whose factor may be any number from 0 on. It is a mark: no result depends on its size."""
_MARGIN = 1.0
"""By how much a mean of two vectors has to be longer than a third one for this to be certain, ns. Chosen: sums of
numbers below 2^50 in 64-bit floating point are off by less. Doubled, a few more edges stay."""


class Weights(NamedTuple):
    """The weight of each edge: a number, and some amounts that count times the factor of their component."""

    base: Array
    """The first component, by edge."""
    offsets: Array
    """Where the amounts of each edge begin, and their number at the end."""
    component: Array
    """Of each amount: 1 to the number of factors."""
    amount: Array


def sparse(weight: Array) -> Weights:
    """Return vectors, one per row, as numbers and amounts."""
    edge, component = np.nonzero(weight[:, 1:])
    offsets = np.searchsorted(edge, np.arange(len(weight) + 1))
    return Weights(
        np.ascontiguousarray(weight[:, 0]), offsets.astype(np.int64), (component + 1).astype(np.int16),
        weight[edge, component + 1],
    )  # fmt: skip


@njit(cache=True)
def copy(result: Array, row: int, vectors: Array, other: int) -> None:
    """Set a row of vectors to another one of others."""
    for i in range(result.shape[1]):
        result[row, i] = vectors[other, i]


@njit(cache=True)
def add(result: Array, row: int, vectors: Array, first: int, second: int) -> None:
    """Set a row of vectors to the sum of two of others."""
    for i in range(result.shape[1]):
        result[row, i] = vectors[first, i] + vectors[second, i]


@njit(cache=True)
def covers(first: Array, row: int, second: Array, other: int, bounds: Array) -> bool:
    """Return whether one vector is at least as long as another one for all factors up to their bounds.

    Each vector is a row of a table: views of single rows would take longer than this comparison.
    """
    ahead = first[row, 0] - second[other, 0]
    for i in range(1, len(bounds)):
        more = first[row, i] - second[other, i]
        if more < 0:
            if bounds[i] == UNBOUNDED:
                return False
            ahead += bounds[i] * more
    return bool(ahead >= 0)


@njit(cache=True)
def cover_together(vectors: Array, first: int, second: int, other: int, bounds: Array) -> bool:
    """Return whether the longer one of two vectors is at least as long as a third one for all factors.

    It is if a weighted mean of the two covers the third one. The share of the first vector in it is one at which the
    mean and the third vector have the same component: between these shares, what the mean is ahead by is linear.
    If it is shorter than the third one by any factor, or by rounding might be, the answer is False.
    """
    for i in range(len(bounds)):
        apart = vectors[first, i] - vectors[second, i]
        if not apart:
            continue
        share = (vectors[other, i] - vectors[second, i]) / apart
        if 0 < share < 1 and _ahead(vectors, first, second, other, i, bounds) >= _MARGIN:
            return True
    return False


@njit(no_cpython_wrapper=True)
def _ahead(vectors: Array, first: int, second: int, other: int, same: int, bounds: Array) -> float:
    """Return by how much a mean of two vectors is at least longer than a third one; -1 if it may be shorter.

    The mean is the one whose component `same` is that of the third vector.
    """
    share = (vectors[other, same] - vectors[second, same]) / (vectors[first, same] - vectors[second, same])
    ahead = 0.0
    for i in range(len(bounds)):
        if i == same:
            continue
        apart = vectors[first, i] - vectors[second, i]
        more = vectors[second, i] - vectors[other, i] + share * apart
        if i and more < (_MARGIN if apart else 0.0):
            if bounds[i] == UNBOUNDED:
                return -1.0
            ahead += bounds[i] * more if more < 0.0 else 0.0  # min would be compiled too
        elif not i:
            ahead += more
    return ahead
