"""The profiler stopped within a step: the recorded part of the step is no whole step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.kinds import ActivityKind
from htagraph.findings.finding import Claim, Evidence, Finding, of_activities
from htagraph.findings.phrases import plural, time_text
from htagraph.findings.results import Results
from htagraph.graph.activities import OPEN

__all__ = ["OPEN_STEP", "OpenStepClaim"]


@dataclass(frozen=True, kw_only=True)
class OpenStepClaim(Claim):
    """The profiler stopped within a step; the figure is how long the longest recorded part of it is, µs."""

    whole: int
    """How many steps of the job were recorded whole."""


def _when(results: Results) -> list[OpenStepClaim]:
    acts = results.graph.activities
    marked = acts.arg(OPEN) if OPEN in acts.args else np.zeros(len(acts), np.int64)
    is_step = acts.kind == ActivityKind.STEP
    rows = np.flatnonzero(is_step & (marked > 0))
    if not len(rows):
        return []
    number = int(acts.step[rows].max())
    rows = rows[acts.step[rows] == number]
    whole = np.unique(acts.step[is_step & (marked <= 0)])
    claim = OpenStepClaim(
        "open_step",
        str(number),
        float(acts.duration[rows].max()) / 1000,
        "us",
        rows=tuple(rows.tolist()),
        ranks=tuple(acts.rank[rows].tolist()),
        whole=len(whole),
    )
    return [claim]


def _short(claim: OpenStepClaim) -> str:
    recorded = f"The profiler stopped within step {claim.about}, {time_text(claim.figure)} after its begin"
    if claim.whole > 1:
        return f"{recorded}."
    whole = f"only the {plural(claim.whole, 'step')} before it" if claim.whole else "no step"
    return f"{recorded}: {whole} was recorded whole."


def _why(claim: OpenStepClaim) -> str:
    """Return that no whole step was recorded; empty where some were."""
    return "" if claim.whole else f"The profiler stopped within step {claim.about}: no step was recorded whole."


def _advice(claim: OpenStepClaim) -> str:
    if claim.whole:
        return ""
    return "Record whole steps: call prof.step() after each step, and let the profiler record two or more."


OPEN_STEP = Finding(
    "open_step",
    when=_when,
    short=_short,
    why=_why,
    evidence=lambda results, claim: Evidence(rows=of_activities(results, claim.rows, "What was recorded of the step")),
    advice=_advice,
)
