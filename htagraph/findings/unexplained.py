"""A caution: no dependency explains a part of the critical path."""

from __future__ import annotations

import itertools

import numpy as np

from htagraph.core.kinds import GapKind
from htagraph.findings.finding import BarPart, Chart, Claim, Evidence, Finding, gap_words, stretches, worded
from htagraph.findings.limits import MIN_SHARE
from htagraph.findings.results import Results
from htagraph.queries.paths import CriticalPath

__all__ = ["UNEXPLAINED"]

_WORDS = {
    "launch_excess": "work that was queued long before it ran: the device was probably busy with earlier work",
    "stream_idle": "streams that wait for something that no dependency explains",
    "sync_return": "blocking calls that return late", "thread_idle": "threads that wait for something unknown",
    "collective_excess": "collectives that last longer than transfers and late ranks explain",
}  # fmt: skip
"""What a kind of unexplained gap is, by the word of `GapKind`."""
_COLORS = ("gap", "other", "waiting", "host", "launch")


def _when(results: Results) -> list[Claim]:
    bound = results.bound
    if not bound.cause or bound.unexplained_percent < 100 * MIN_SHARE:
        return []
    facts = {"mostly": next(iter(bound.unexplained), ""), "is_bound": bound.cause == "gap"}
    return [Claim("unexplained", "path", bound.unexplained_percent, "percent", facts=facts)]


def _long(claim: Claim) -> str:
    kind = _WORDS.get(claim.facts["mostly"], claim.facts["mostly"].replace("_", " "))
    return (
        f"Unexplained pauses make up {claim.figure:.0f} % of the critical path (mostly {kind}): predictions are less "
        "certain by that much (htagraph critical-path --segments)."
    )


def _evidence(results: Results, _claim: Claim) -> Evidence:
    unexplained = [gap for gap in GapKind if gap.is_unexplained]
    parts = results.path.segments
    longest = stretches(results, np.isin(parts.gap, unexplained))
    times = [(gap, float(parts.length[parts.gap == gap].sum()) / 1000) for gap in unexplained]
    rest = results.path.makespan_ns / 1000 - sum(us for _, us in times)
    pieces = [BarPart(gap_words(gap), color, us) for (gap, us), color in zip(times, itertools.cycle(_COLORS))]
    chart = Chart("What nothing explains", stacks=[("critical path", [*pieces, BarPart("explained", "idle", rest)])])
    return Evidence(
        chart, longest, place=longest.first, look="the longest stretch of it",
        command=("critical-path", "--segments"), meaning=CriticalPath.to_frame,
    )  # fmt: skip


_SHORT = "{figure:.0f} % of the critical path is unexplained, and predictions are less certain by that much"
UNEXPLAINED = Finding(
    "unexplained", when=_when, long=_long, short=worded(_SHORT), evidence=_evidence, is_caution=True
)  # fmt: skip
