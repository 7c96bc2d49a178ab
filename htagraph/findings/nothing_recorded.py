"""Nothing was recorded: no rank has any work, so nothing else is said."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.results import Results

__all__ = ["NOTHING_RECORDED"]


def _when(results: Results) -> list[Claim]:
    takes_time = len(results.busy) and results.graph.activities.duration.any()
    return [] if takes_time else [Claim("nothing_recorded", "", float(len(results.busy)), "count")]


NOTHING_RECORDED = Finding("nothing_recorded", when=_when, short=lambda claim:
    "All durations are 0, so nothing is known of what takes time. Did the program that wrote the files lose them?"
    if claim.figure else "No work was recorded on any rank. Was the profiler active during a step?",
)  # fmt: skip
