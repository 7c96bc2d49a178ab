"""Nothing was recorded: no rank has any work, so nothing else is said."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.results import Results

__all__ = ["NOTHING_RECORDED"]


def _when(results: Results) -> list[Claim]:
    activities = results.graph.activities
    takes_time = len(results.busy) and activities.duration.any()
    return [] if takes_time else [Claim("nothing_recorded", "", float(len(activities)), "count")]


def _short(claim: Claim) -> str:
    if claim.figure:
        unknown = "All durations are 0, so nothing is known of what takes time."
        return f"{unknown} Did the program that wrote the files lose them?"
    return "No work was recorded on any rank. Was the profiler active during a step?"


NOTHING_RECORDED = Finding("nothing_recorded", when=_when, short=_short, why=_short)
