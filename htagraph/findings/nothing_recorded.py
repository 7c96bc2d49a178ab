"""Nothing was recorded: no rank has any work, so nothing else is said."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding

__all__ = ["NOTHING_RECORDED"]


NOTHING_RECORDED = Finding(
    "nothing_recorded",
    when=lambda results: [] if len(results.busy) else [Claim("nothing_recorded", "", 0.0, "count")],
    short=lambda _: "No work was recorded on any rank. Was the profiler active during a step?",
)
