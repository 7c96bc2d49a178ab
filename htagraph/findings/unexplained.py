"""A caution: no dependency explains a part of the critical path."""

from __future__ import annotations

import itertools

import numpy as np

from htagraph.core.kinds import GapKind
from htagraph.findings.finding import JUDGES, BarPart, Chart, Claim, Evidence, Finding, gap_words, stretches
from htagraph.findings.limits import MIN_SHARE
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.queries.path_segments import bound_of
from htagraph.queries.paths import CriticalPath

__all__ = ["UNEXPLAINED"]

_COLORS = ("gap", "other", "waiting", "host", "launch")


def _when(results: Results) -> list[Claim]:
    bound = bound_of(results.path)
    if not bound.cause or bound.unexplained_percent < 100 * MIN_SHARE:
        return []
    mostly = next(iter(bound.unexplained), "")
    us = bound.unexplained.get(mostly, 0.0) / 100 * results.path.makespan_ns / 1000
    facts = {"mostly": mostly, "mostly_us": us}
    return [Claim("unexplained", "path", bound.unexplained_percent, "percent", facts=facts)]


def _short(claim: Claim) -> str:
    facts = claim.facts
    doubt = f"{claim.figure:.0f} % of the critical path is unexplained, and predictions are less certain by that much"
    if facts["mostly"] != GapKind.LAUNCH_EXCESS.label:
        return doubt
    queued = f"kernels were queued {time_text(facts['mostly_us'])} before they ran"
    return f"{queued}, and the device was probably busy with earlier work: {doubt}"


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


UNEXPLAINED = Finding("unexplained", needs=JUDGES, when=_when, short=_short, evidence=_evidence, is_caution=True)
