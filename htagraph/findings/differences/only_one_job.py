"""Only one of two jobs has some call paths."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.core.kinds import ActivityKind
from htagraph.findings.differences.pair import JobPair, Side
from htagraph.findings.differences.words import cut
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural, time_text

__all__ = ["ONLY_ONE_JOB", "OnlyOneJobClaim"]


@dataclass(frozen=True, kw_only=True)
class OnlyOneJobClaim(Claim):
    """One job has call paths that the other lacks; the figure counts these."""

    side: Side
    """The job that has them."""
    path: str
    """The longest of the paths."""
    path_us: float
    """The time of that path per rank and step, µs."""
    span: str
    """The span of the time: ``step`` or ``job``."""


def _when(pair: JobPair) -> list[OnlyOneJobClaim]:
    diff = pair.diff
    before, after = pair.records_python
    apart = ActivityKind.PYTHON.label if before != after else ""  # recorded in one job only
    sides: tuple[Side, Side] = ("after", "before")
    claims = []
    for side, every in zip(sides, (diff.added, diff.removed), strict=True):
        table = every[every["kind"] != apart]
        if len(table):
            path = str(table["path"].iloc[0])
            path_us = float(table["total_us"].iloc[0])
            claims.append(
                OnlyOneJobClaim(
                    "only_one_job", side, len(table), "count", side=side, path=path, path_us=path_us, span=diff.unit
                )
            )
    return claims


def _short(claim: OnlyOneJobClaim) -> str:
    joint = ":" if claim.figure == 1 else ", such as"
    return (
        f"Only the job {claim.side} has {plural(int(claim.figure), 'call path')}{joint} {cut(claim.path)} "
        f"({time_text(claim.path_us)} per rank and {claim.span})."
    )


ONLY_ONE_JOB = Finding("only_one_job", when=_when, short=_short)
