"""Weights that are vectors, and which of two is at least as long whatever the factors are. Compiled by numba.

The first component of a vector counts as it is, every other one times a factor that is chosen later, from 0 to the
bound of that component.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["UNBOUNDED", "Weights", "covers", "sparse"]

Array: TypeAlias = npt.NDArray[Any]

UNBOUNDED = -1
"""The bound of a component whose factor may be any number from 0 on. It is a mark: no result depends on its size."""


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
        np.ascontiguousarray(weight[:, 0]), offsets.astype(np.int64), (component + 1).astype(np.int8),
        weight[edge, component + 1],
    )  # fmt: skip


@njit(cache=True)
def covers(first: Array, row: int, second: Array, other: int, bounds: Array) -> bool:
    """Return whether one vector is at least as long as another one for all factors up to their bounds.

    Args:
        first: vectors, one per row: views of single rows would take longer than this comparison.
        row: the row of the one.
        second: vectors.
        other: the row of the other one there.
        bounds: of each component, the largest factor or `UNBOUNDED`; that of the first one is not read.
    """
    ahead = first[row, 0] - second[other, 0]
    for i in range(1, len(bounds)):
        more = first[row, i] - second[other, i]
        if more < 0:
            if bounds[i] == UNBOUNDED:
                return False
            ahead += bounds[i] * more
    return bool(ahead >= 0)
