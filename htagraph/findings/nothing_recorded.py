"""Nothing was recorded: no rank has any work, so nothing else is said."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.results import Results

__all__ = ["NOTHING_RECORDED"]


def _when(results: Results) -> list[Claim]:
    return [] if len(results.busy) else [Claim("nothing_recorded", "", 0.0, "count")]


_WORDS = "No work was recorded on any rank. Was the profiler active during a step?"
NOTHING_RECORDED = Finding("nothing_recorded", when=_when, short=lambda _: _WORDS)
