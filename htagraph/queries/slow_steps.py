"""Which rank is slow in some steps only: by more than chance, and more often than chance would have it.

A rank that is held up in each third step is as fast as its peers in the median step. What tells it is that single
steps stand out, by more than the largest of all differences would by chance, and that they are its own: delays that
strike any rank alike do not strike the same one again and again, and not at equal distances.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.statistics import upper_quantile

__all__ = ["slow_steps"]

_CHANCE_OF_LARGEST = 0.01
"""Probability that the largest difference of any rank in any step stands out by chance. Chosen: what stands out must
also recur. Doubled, a step of ten in a job of four ranks stands out from 4.1 instead of 4.4 deviations."""
_CHANCE_OF_ONE_RANK = 0.01
"""Probability that delays which strike any rank alike strike this one as often and as evenly.

Chosen: with four ranks five delays at any distance, or three at equal distances; with eight ranks four. That a job has
as many delays and all of one rank is rarer than this. Doubled, four delays of one rank of four suffice."""
_MIN_EVEN = 3
"""Delays that are needed: two have a single distance, which is equal to no other. Doubled, a rank must be held up six
times, for which a recording of ten steps has no room."""
_SAME_SIZE = 0.5
"""Share of a rank's median delay from which delays of other ranks count as of the same kind. Chosen. Doubled, smaller
delays of others, which happen in all jobs, are not counted, and a rank is named on weaker evidence."""


def slow_steps(differences: Array, floor: float) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the row of the rank that is slow in some steps, or -1; in which steps).

    Args:
        differences: by rank and step: the own time beyond the median of the other ranks', ns.
        floor: the least deviation, ns.

    Example:
        >>> held_up = np.zeros((4, 10))
        >>> held_up[1, [1, 4, 7]] = 52.0
        >>> row, steps = slow_steps(held_up, 1.0)
        >>> row, np.flatnonzero(steps).tolist()
        (1, [1, 4, 7])
    """
    ranks, count = differences.shape
    none = np.zeros(count, np.bool_)
    if count <= _MIN_EVEN:
        return -1, none
    rest = differences - np.quantile(differences, 0.5, axis=1, method="lower")[:, None]
    faster = np.sort(rest, axis=1)[:, : (count - 1) // 2]  # the half without delays
    spread = np.sqrt((faster**2).mean(axis=1))
    spread = np.maximum(np.maximum(spread, np.median(spread)), floor)
    freedom = (count - 1) * max(1.0, (ranks - 1) / 2)
    stands_out = rest > upper_quantile(_CHANCE_OF_LARGEST / rest.size, freedom) * spread[:, None]
    row = int(np.where(stands_out, rest, 0).sum(axis=1).argmax())
    steps = stands_out[row]
    begins = _begins(steps)
    if len(begins) < _MIN_EVEN:
        return -1, none
    alike = stands_out & (rest > _SAME_SIZE * np.median(rest[row][steps]))
    others = sum(len(_begins(each)) for at, each in enumerate(alike) if at != row)
    chance = ranks * _at_least(len(begins), len(begins) + others, 1 / ranks) * _chance_of_distances(begins, count)
    return (row, steps) if chance < _CHANCE_OF_ONE_RANK else (-1, none)


def _begins(steps: Array) -> npt.NDArray[np.int64]:
    """Return where runs of True begin: what lasts for several steps is one delay."""
    return np.flatnonzero(steps & ~np.concatenate([[False], steps[:-1]]))


def _at_least(number: int, trials: int, share: float) -> float:
    """Return the probability that at least `number` of independent trials succeed; a share of them, below 1, does."""
    return sum(
        exp(_log_ways(trials, k) + k * log(share) + (trials - k) * log1p(-share)) for k in range(number, trials + 1)
    )


def _log_ways(count: int, number: int) -> float:
    """Return the logarithm of the ways to choose some of so many, whose number of thousands of steps is no float."""
    return lgamma(count + 1) - lgamma(number + 1) - lgamma(count - number + 1)


def _chance_of_distances(begins: Array, count: int) -> float:
    """Return the probability that as many steps of a recording lie as evenly by chance; 1 unless they are even.

    Even are steps at equal distances with no such step missing at the begin or the end of the recording.
    """
    number, first, last = len(begins), int(begins[0]), int(begins[-1])
    distances = np.unique(np.diff(begins))
    if len(distances) > 1 or first >= distances[0] or last + distances[0] < count:
        return 1.0
    distance = np.arange(2, count)
    # the first of them, such that as many of the same distance follow until the end, and none comes before
    earliest = np.maximum(count - number * distance, 0)
    latest = np.minimum(count - 1 - (number - 1) * distance, distance - 1)
    even = int(np.maximum(latest - earliest + 1, 0).sum())
    return min(1.0, 2 * even * exp(-_log_ways(count, number)))  # two ways to be conspicuous: often, or evenly
