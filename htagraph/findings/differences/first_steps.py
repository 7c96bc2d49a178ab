"""First steps of a job warm up, and are not compared."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.findings.differences.pair import JobPair, Side
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural
from htagraph.graph.measures.steps import cadence_of

__all__ = ["FIRST_STEPS", "FirstStepsClaim"]


@dataclass(frozen=True, kw_only=True)
class FirstStepsClaim(Claim):
    """First steps are left out; the figure counts them."""

    side: Side
    """The job of these steps."""


def _when(pair: JobPair) -> list[FirstStepsClaim]:
    claims = []
    sides: tuple[Side, Side] = ("before", "after")
    for side, job in zip(sides, pair.diff.parts, strict=True):
        cadence = cadence_of(job.graph)
        if cadence and cadence.warm_up and job.steps and job.steps[0] > cadence.steps[cadence.warm_up - 1]:
            claims.append(FirstStepsClaim("first_steps", side, cadence.warm_up, "count", side=side))
    return claims


def _short(claim: FirstStepsClaim) -> str:
    steps = "step" if claim.figure == 1 else plural(int(claim.figure), "step")
    return f"Not compared: the first {steps} of the job {claim.side}, as first steps warm up."


FIRST_STEPS = Finding("first_steps", when=_when, short=_short)
