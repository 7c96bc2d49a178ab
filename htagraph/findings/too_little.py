"""Too little was recorded: nothing is advised but to record whole steps."""

from __future__ import annotations

from typing import Final

from htagraph.core.kinds import ActivityKind
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural
from htagraph.findings.results import Results

__all__ = ["TOO_LITTLE"]

_LEAST_NS: Final = 10_000
"""Time of a recording that can be judged, ns. Chosen: the launch of a kernel, with its kernel, takes as long. Doubled,
two launches are refused."""
_SHORT_NS: Final = 1_000_000
"""Time of a recording of few rows that can be judged, ns. Chosen: a step of the smallest jobs takes as long.
Doubled, a job of nine rows is refused up to 2 ms."""
_LEAST_ROWS: Final = 10
"""Rows of a short recording that can be judged. Chosen: a layer forward and backward has more. Doubled, jobs of ten
kernels without calls are refused."""


def _when(results: Results) -> list[Claim]:
    acts = results.graph.activities
    lasts_ns = results.makespan_ns
    is_short = lasts_ns < _LEAST_NS or (lasts_ns < _SHORT_NS and len(acts) < _LEAST_ROWS)
    has_steps = bool((acts.kind == ActivityKind.STEP).any())
    if has_steps or not is_short or not lasts_ns:
        return []
    return [Claim("too_little", "", float(len(acts)), "count")]


def _why(claim: Claim) -> str:
    """Return how few rows were recorded, as a sentence."""
    return f"Too little was recorded to judge a job: {plural(int(claim.figure), 'row')} of a moment."


TOO_LITTLE = Finding(
    "too_little",
    when=_when,
    short=_why,
    why=_why,
    advice=lambda *_: "Record whole steps of the job.",
)
