"""Classes of time and their factors, in whole numbers, so that sums along paths are exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.contraction.vectors import UNBOUNDED
from htagraph.core.errors import SelectionError
from htagraph.queries.weights import ChangeError, checked

__all__ = ["Factors", "TimeClasses", "as_nanoseconds"]

Factors: TypeAlias = Mapping[str, float]
"""By class, the factor that its time is multiplied by; 1 where a class is not named."""

_MAX_DENOMINATOR = 1_000_000
"""Parts of a ns in which times are summed, at most. Chosen: factors of up to six decimals, and fractions such as 1/3,
are exact, others are off by 0.0000005 at most. Doubled, that halves, and so does the longest job (half an hour)."""
_MAX_TIME = 1 << 61
"""The most parts of a ns that a time can have: twice as many fit into int64. It is a limit of the machine."""


@dataclass(frozen=True)
class TimeClasses:
    """The classes whose time a factor multiplies, and the components of weights that they make.

    Where the selections of several classes overlap, their common time is a component of its own, which is multiplied
    by the factors of all of them: components are the disjoint atoms of all selections.
    """

    names: tuple[str, ...] = ()
    limits: tuple[int, ...] = ()
    """Of each class, the largest factor or `UNBOUNDED`."""
    switches: tuple[bool, ...] = ()
    """Of each class, whether its factor is 1 (as recorded) or 0 (with a change), and nothing between."""
    parts: tuple[tuple[int, ...], ...] = ()
    """Of each component but the first, which is time of no class: the classes that it belongs to."""

    @property
    def bounds(self) -> npt.NDArray[np.int64]:
        """The largest product of factors of each component, or `UNBOUNDED`; that of the first one is not read."""
        limits = [[self.limits[number] for number in part] for part in self.parts]
        return np.array([1, *(UNBOUNDED if UNBOUNDED in part else math.prod(part) for part in limits)], np.int64)

    def numerators(self, factors: Factors | None) -> tuple[npt.NDArray[np.int64], int]:
        """Return (what each component is multiplied by to give parts of a ns, how many of these make a ns).

        Raises:
            SelectionError: there is no such class.
            ChangeError: a factor is negative, not finite or larger than its class allows.
        """
        given = {name: self._factor(name, value) for name, value in (factors or {}).items()}
        values = [given.get(name, Fraction(1)) for name in self.names]
        each = [math.prod((values[number] for number in part), start=Fraction(1)) for part in self.parts]
        unit = min(math.lcm(*(value.denominator for value in each)), _MAX_DENOMINATOR)
        return np.array([unit, *(round(value * unit) for value in each)], np.int64), unit

    def _factor(self, name: str, value: float) -> Fraction:
        if name not in self.names:
            msg = f"no class {name!r}: choose from {', '.join(self.names) or 'none (there are no classes)'}"
            raise SelectionError(msg)
        number = self.names.index(name)
        factor = checked(value, name, most=1e6 if self.limits[number] == UNBOUNDED else self.limits[number])
        if self.switches[number] and factor not in {0.0, 1.0}:
            msg = f"{name}={value}: give 1 (as recorded) or 0 (with that change)"
            raise ChangeError(msg)
        return Fraction(factor).limit_denominator(_MAX_DENOMINATOR)

    def refuse_overflow(self, longest: Sequence[int], numerators: npt.NDArray[np.int64]) -> None:
        """Raise an error if times may not fit into 64 bits.

        Args:
            longest: of each component, the weight of its heaviest path, ns.
            numerators: result of the method of that name.

        Raises:
            ChangeError: they may not.
        """
        if sum(length * times for length, times in zip(longest, numerators.tolist(), strict=True)) > _MAX_TIME:
            msg = "these factors make the job too long to be computed exactly: give smaller ones, or fewer decimals"
            raise ChangeError(msg)


def as_nanoseconds(time: npt.NDArray[np.int64], unit: int) -> npt.NDArray[np.int64]:
    """Return times in parts of a ns, `unit` of which make one, as ns: rounded to the nearest, halves up."""
    return time if unit == 1 else (2 * time + unit) // (2 * unit)
