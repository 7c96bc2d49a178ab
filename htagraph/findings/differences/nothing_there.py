"""Nothing was recorded in one of two jobs, or in both."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.findings.differences.pair import JobPair, Side
from htagraph.findings.finding import Claim, Finding

__all__ = ["NOTHING_THERE", "NothingThereClaim"]


@dataclass(frozen=True, kw_only=True)
class NothingThereClaim(Claim):
    """Nothing was recorded; the figure is in how many jobs."""

    empty: tuple[Side, ...]
    """The jobs without a recording."""


def _when(pair: JobPair) -> list[NothingThereClaim]:
    empty = tuple(pair.empty)
    return [NothingThereClaim("nothing_there", " ".join(empty), len(empty), "count", empty=empty)] if empty else []


def _short(claim: NothingThereClaim) -> str:
    if len(claim.empty) > 1:
        return "Nothing was recorded: there is nothing to compare."
    return f"Nothing was recorded in the job {claim.empty[0]}: there is nothing to compare with."


NOTHING_THERE = Finding("nothing_there", when=_when, short=_short, is_unknown=True)
