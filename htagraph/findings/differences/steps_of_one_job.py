"""Only one of two jobs has steps, so that whole jobs are compared."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.findings.differences.pair import ComparedJobs, Side
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural

__all__ = ["STEPS_OF_ONE_JOB", "StepsOfOneJobClaim"]


@dataclass(frozen=True, kw_only=True)
class StepsOfOneJobClaim(Claim):
    """One job has no steps; the figure counts the steps of the other one."""

    without: Side
    """The job without steps."""
    stepped: Side
    """The job with steps."""


def _when(pair: ComparedJobs) -> list[StepsOfOneJobClaim]:
    jobs = pair.parts
    counts = [len(job.graph.steps) for job in jobs]
    if jobs[0].steps or all(counts) or not any(counts):
        return []
    sides: tuple[Side, Side] = ("before", "after") if counts[1] else ("after", "before")
    claim = StepsOfOneJobClaim("steps_of_one_job", sides[0], max(counts), "count", without=sides[0], stepped=sides[1])
    return [claim]


def _short(claim: StepsOfOneJobClaim) -> str:
    return (
        f"The job {claim.without} has no steps, so whole jobs are compared; the job {claim.stepped} has "
        f"{plural(int(claim.figure), 'step')}. Record both with profiler.step() to compare steps."
    )


STEPS_OF_ONE_JOB = Finding("steps_of_one_job", when=_when, short=_short)
