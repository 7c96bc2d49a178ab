"""A sweep as an option of the command line, such as ``--sweep network=0.25..2``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from htagraph.whatif.criteria_options import criteria

if TYPE_CHECKING:
    from htagraph.whatif.scenario import Scenario

__all__ = ["Sweep", "read_sweep"]

_RANGE = re.compile(r"(?P<first>[^:]+)\.\.(?P<last>[^:]+?)(:(?P<points>\d{1,4}))?")
_PER_OCTAVE = 2
"""Points between a factor and twice of it. Chosen: a curve of step times has no corner that is missed by much. Doubled,
it takes twice as long."""
_LINEAR_POINTS = 5
"""Points of a range that begins at 0, which has no octaves. Chosen: every quarter of it. Doubled, twice as long."""
_MAX_POINTS = 100
"""Points that may be asked for. Chosen: more is a mistake, and each takes eleven replays. Doubled, 200."""


@dataclass(frozen=True)
class Sweep:
    """What takes a multiple of its time, and which multiples."""

    what: str
    """``network``, or criteria as `criteria` reads them."""
    factors: tuple[float, ...]

    def apply(self, scenario: Scenario, factor: float) -> Scenario:
        """Return the scenario in which it takes `factor` times as long."""
        if self.what == "network":
            return scenario.scale_network(factor=factor)
        return scenario.scale(factor=factor, **self._criteria())

    def _criteria(self) -> dict[str, Any]:
        return criteria(self.what)


def read_sweep(text: str) -> Sweep:
    """Return the sweep that a text asks for.

    Args:
        text: ``WHAT=FROM..TO``, ``WHAT=FROM..TO:POINTS`` or ``WHAT=F1,F2,F3``; WHAT is ``network`` or criteria. A range
            has points at equal ratios (every half octave if not said), or at equal distances if it begins at 0.

    Raises:
        ValueError: it is none.

    Example:
        >>> read_sweep("network=0.5..2").factors, read_sweep("kind=computation=0..1:3").factors
        ((0.5, 0.7071, 1.0, 1.414, 2.0), (0.0, 0.5, 1.0))
    """
    what, _, values = text.rpartition("=")
    found = _RANGE.fullmatch(values)
    try:
        if found:
            points = int(found["points"]) if found["points"] else None
            factors = _between(float(found["first"]), float(found["last"]), points)
        else:
            factors = tuple(float(each) for each in values.split(","))
    except ValueError:
        factors = ()
    if not what or not factors or len(factors) > _MAX_POINTS or not all(0 <= each < math.inf for each in factors):
        msg = (
            f"{text!r} is no sweep: write network=FROM..TO or CRITERIA=FROM..TO, such as network=0.25..2, "
            f"name=*gemm*=0.5..1:6 (6 points) or kind=computation=0.5,1,2; at most {_MAX_POINTS} points"
        )
        raise ValueError(msg)
    sweep = Sweep(what, factors)
    if what != "network":
        sweep._criteria()  # refuses what it cannot read
    return sweep


def _between(first: float, last: float, points: int | None) -> tuple[float, ...]:
    """Return factors from the first to the last, rounded to four digits."""
    if not 0 <= first < last < math.inf or points == 1:
        return ()
    if not first:
        count = points or _LINEAR_POINTS
        return tuple(_rounded(last * i / (count - 1)) for i in range(count))
    count = points or 1 + max(1, round(_PER_OCTAVE * math.log2(last / first)))
    return tuple(_rounded(first * (last / first) ** (i / (count - 1))) for i in range(count))


def _rounded(factor: float) -> float:
    return float(f"{factor:.4g}")
