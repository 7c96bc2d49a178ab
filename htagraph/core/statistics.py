"""Statistics of groups of numbers, all groups at once, on arrays; and Student's t distribution.

On arrays, they take about a tenth of the time of pandas' ``groupby``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, run_starts

__all__ = [
    "CHANCE", "DEVIATIONS_OF_90", "DISTRIBUTION", "MAD_TO_DEVIATION", "MOST", "SEVERAL", "STANDS_OUT", "STEP_SPREAD",
    "described",
    "least_of", "middles", "ordered_by", "others_median", "summed", "upper_quantile",
]  # fmt: skip

MOST: Final = 0.5
"""Share from which a part is the larger one of a whole. It cannot be doubled."""
CHANCE: Final = 0.005
"""Probability that a difference is as large by chance, one-sided: that of a 99 % interval. Chosen: one of 200
comparisons is wrong. Doubled, one of 100: of 4 ranks, one is slow from 4.0, not 4.5, standard errors in 5 steps."""
SEVERAL: Final = 3
"""How often something must be there to be a pattern, as two are alike by chance. Chosen; doubled, short recordings and
small groups of ranks have no patterns."""
STEP_SPREAD: Final = 0.024
"""Relative standard deviation of a step, where fewer than three were recorded, which do not show it. Measured: with it,
the interval holds nine of ten differences of two steps, of 13 recordings of jobs on GPUs with three to six steps (the
median is 1.6 %). Doubled, no interval of a recording with two steps is narrower than ± 11 %."""
STANDS_OUT: Final = 1.5
"""Times the usual from which something stands out. Chosen: a half more is beyond what shares vary by. Doubled, one of
four ranks has to be charged 75 %, and eight ranks on two cores are not seen to go on in turn."""
DISTRIBUTION = ("count", "mean", "std", "min", "p25", "median", "p75", "max")
"""Names of the statistics that `described` returns, as in ``pandas.DataFrame.describe``."""
_QUARTILES = (("p25", 0.25), ("median", 0.5), ("p75", 0.75))


def summed(values: Array, group: Array, groups: int) -> dict[str, Array]:
    """Return ``count``, ``sum``, ``mean``, ``std`` (sample standard deviation), ``min`` and ``max`` of each group.

    All but count and sum are NaN for a group without values, and std for a group of one value.

    Example:
        >>> stats = summed(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 2]), 3)
        >>> stats["sum"].tolist(), stats["mean"].tolist()
        ([4.0, 0.0, 5.0], [2.0, nan, 5.0])
    """
    order = np.argsort(group, kind="stable")
    return _of_sorted(values[order].astype(np.float64), group[order], groups)


def described(values: Array, group: Array, groups: int) -> dict[str, Array]:
    """Return the statistics named in `DISTRIBUTION` of each group; quartiles are interpolated linearly.

    Arguments and empty groups as in `summed`.

    Example:
        >>> stats = described(np.array([3.0, 1.0]), np.array([0, 0]), 1)
        >>> [float(stats[name][0]) for name in DISTRIBUTION]
        [2.0, 2.0, 1.4142135623730951, 1.0, 1.5, 2.0, 2.5, 3.0]
    """
    order = np.lexsort((values, group))
    values = values[order].astype(np.float64)
    stats = _of_sorted(values, group[order], groups)
    size = stats["count"]
    first, some = np.cumsum(size) - size, size > 0
    for name, share in _QUARTILES:
        at = share * (size[some] - 1)
        low = np.floor(at).astype(np.int64)
        below, above = values[first[some] + low], values[first[some] + np.ceil(at).astype(np.int64)]
        stats[name] = np.full(groups, np.nan)
        stats[name][some] = below + (above - below) * (at - low)
    return {name: stats[name] for name in DISTRIBUTION}


def _of_sorted(values: Array, group: Array, groups: int) -> dict[str, Array]:
    """Return what `summed` returns, given values in the order of their groups."""
    size = np.bincount(group, minlength=groups)
    some = size > 0
    first = (np.cumsum(size) - size)[some]
    total, mean, deviation, low, high = np.zeros(groups), *np.full((4, groups), np.nan)
    if len(values):
        total[some] = np.add.reduceat(values, first)
        low[some], high[some] = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        mean[some] = total[some] / size[some]
        squares = np.add.reduceat((values - mean[group]) ** 2, first)
        deviation[some] = np.sqrt(squares / np.where(size[some] > 1, size[some] - 1, np.nan))
    return {"count": size, "sum": total, "mean": mean, "std": deviation, "min": low, "max": high}


def middles(values: Array, group: Array) -> tuple[Array, Array]:
    """Return, for each value, the lower and the upper median of its group, which differ for even counts.

    Example:
        >>> [each.tolist() for each in middles(np.array([4, 1, 9, 7]), np.array([0, 0, 0, 2]))]
        [[4, 4, 4, 7], [4, 4, 4, 7]]
    """
    ordered, size = values[np.lexsort((values, group))], np.bincount(group)
    first, some = np.cumsum(size) - size, np.maximum(size, 1)
    last = max(len(values) - 1, 0)
    low, high = (np.minimum(first + half, last) for half in ((some - 1) // 2, some // 2))
    return ordered[low[group]], ordered[high[group]]


def least_of(values: Array, group: Array) -> Array:
    """Return, for each integer, the least of its group.

    Example:
        >>> least_of(np.array([4, 1, 9]), np.array([0, 0, 2])).tolist()
        [1, 1, 9]
    """
    least = np.full(int(group.max()) + 1 if len(group) else 0, np.iinfo(np.int64).max)
    np.minimum.at(least, group, values)
    return np.asarray(least[group])


def ordered_by(group: Array, values: Array, place: Callable[[Ints], Ints]) -> tuple[Array, Array]:
    """Return (the groups that occur, ascending; of the values of each, in their order, the one at a place).

    `place` returns the place, 0 and up, for groups of so many values.

    Example:
        >>> group, median = ordered_by(np.array([7, 2, 7]), np.array([9, 5, 3]), lambda count: count // 2)
        >>> group.tolist(), median.tolist()
        ([2, 7], [5, 9])
    """
    order = np.lexsort((values, group))
    known, first, count = np.unique(group[order], return_index=True, return_counts=True)
    return known, values[order][first + place(count)]


def others_median(values: Array, group: Array) -> npt.NDArray[np.float64]:
    """Return, for each value, the median of the other values of its group; NaN without others, and for group -1.

    Example:
        >>> others_median(np.array([1.0, 2.0, 4.0, 9.0]), np.array([0, 0, 0, -1])).tolist()
        [3.0, 2.5, 1.5, nan]
    """
    out = np.full(len(values), np.nan)
    rows = np.flatnonzero(group >= 0)
    order = rows[np.lexsort((values[rows], group[rows]))]
    number, ordered = group[order], values[order]
    first = run_starts(number)
    size = np.diff(np.append(first, len(order)))
    first, size = np.repeat(first, size), np.repeat(size, size)
    place = np.arange(len(order)) - first
    some = size > 1
    order, first, place, rest = order[some], first[some], place[some], size[some] - 1
    low, high = (rest - 1) // 2, rest // 2
    low, high = low + (low >= place), high + (high >= place)  # places among the others → among all
    out[order] = (ordered[first + low] + ordered[first + high]) / 2
    return out


DEVIATIONS_OF_90: Final = 1.645
"""Standard deviations on each side of the mean that hold 90 % of a normal distribution. Doubled, 99.9 %."""
MAD_TO_DEVIATION: Final = 1.4826
"""Standard deviation over median absolute deviation, a constant of the normal distribution."""


def upper_quantile(chance: float, freedom: float) -> float:
    """Return the value that a t-distributed number exceeds with a given probability.

    Hill's approximation (Communications of the ACM 13, 1970, algorithm 396): six digits from five degrees of freedom
    on, four below; exact for one and two. The probability is at most 0.05, where the approximation is good; degrees of
    freedom are at least 1 and need not be whole.

    Example:
        >>> [round(upper_quantile(0.001, freedom), 3) for freedom in (1, 2, 5, 100)]
        [318.309, 22.327, 5.893, 3.174]
    """
    both = 2 * chance
    if freedom == 1:
        return 1 / math.tan(both * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (both * (2 - both)) - 2)
    a = 1 / (freedom - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * both) ** (2 / freedom)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(chance)
        y = x * x
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        return math.sqrt(freedom * math.expm1(a * y * y))
    z = (freedom + 6) / (freedom * y) - 0.089 * d - 0.822
    y = ((1 / (z * (freedom + 2) * 3) + 0.5 / (freedom + 4)) * y - 1) * (freedom + 1) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)
