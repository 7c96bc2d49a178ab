"""Python functions were recorded in one of two jobs only, which makes its host slower."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.findings.differences.pair import ComparedJobs, Side
from htagraph.findings.finding import Claim, Finding

__all__ = ["PYTHON_OF_ONE_JOB", "PythonOfOneJobClaim"]


@dataclass(frozen=True, kw_only=True)
class PythonOfOneJobClaim(Claim):
    """One job has Python functions; the figure is in how many jobs they are."""

    side: Side
    """The job that has them."""


def _when(pair: ComparedJobs) -> list[PythonOfOneJobClaim]:
    before, after = pair.records_python
    if before == after:
        return []
    side: Side = "before" if before else "after"
    return [PythonOfOneJobClaim("python_of_one_job", side, 1, "count", side=side)]


def _short(claim: PythonOfOneJobClaim) -> str:
    return (
        f"Python functions were recorded in the job {claim.side} only, which makes its host slower: record both with "
        "the same settings to compare their hosts."
    )


PYTHON_OF_ONE_JOB = Finding("python_of_one_job", when=_when, short=_short)
