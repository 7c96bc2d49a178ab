"""Student's t distribution: by how many standard errors a difference must exceed 0 to be more than chance."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

__all__ = ["MAD_TO_DEVIATION", "upper_quantile"]

MAD_TO_DEVIATION: Final = 1.4826
"""Standard deviation over median absolute deviation, a constant of the normal distribution."""


def upper_quantile(chance: float, freedom: float) -> float:
    """Return the value that a t-distributed number exceeds with a given probability.

    Hill's approximation (Communications of the ACM 13, 1970, algorithm 396): six digits from five degrees of freedom
    on, four below; exact for one and two.

    Args:
        chance: the probability, above 0 and at most 0.05, where the approximation is good.
        freedom: degrees of freedom, at least 1; they need not be whole.

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
