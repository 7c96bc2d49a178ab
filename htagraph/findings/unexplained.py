"""A caution: no dependency explains a part of the critical path."""

from __future__ import annotations

import itertools

import numpy as np

from htagraph.core.kinds import GapKind
from htagraph.findings.finding import JUDGES, BarPart, Chart, Claim, Evidence, Finding, gap_words, stretches
from htagraph.findings.limits import MIN_SHARE
from htagraph.findings.phrases import share_text
from htagraph.findings.results import Results
from htagraph.queries.path_segments import bound_of
from htagraph.queries.paths import CriticalPath

__all__ = ["UNEXPLAINED"]

_COLORS = ("gap", "other", "waiting", "host", "launch")


def _when(results: Results) -> list[Claim]:
    has_start_up = results.warm_graph is not results.graph
    path = results.warm_path if has_start_up else results.path
    bound = bound_of(path)
    if not bound.cause or bound.unexplained_percent < 100 * MIN_SHARE:
        return []
    return [Claim("unexplained", "path", bound.unexplained_percent, "percent")]


def _short(claim: Claim) -> str:
    return f"{claim.figure:.0f} % of the critical path is unexplained, and predictions are less certain by that much"


def _why(claim: Claim) -> str:
    """Return how much of the critical path nothing explains."""
    return f"what {share_text(claim.figure)} of the critical path waits for"


def _evidence(results: Results, _claim: Claim) -> Evidence:
    unexplained = [gap for gap in GapKind if gap.is_unexplained]
    segments = results.path.segments
    longest = stretches(results, np.isin(segments.gap, unexplained))
    pieces = list[BarPart]()
    explained_us = results.path.makespan_ns / 1000
    for gap, color in zip(unexplained, itertools.cycle(_COLORS)):
        us = float(segments.length[segments.gap == gap].sum()) / 1000
        pieces.append(BarPart(gap_words(gap), color, us))
        explained_us -= us
    pieces.append(BarPart("explained", "idle", explained_us))
    return Evidence(
        Chart("What nothing explains", stacks=[("critical path", pieces)]),
        longest,
        place=longest.first,
        look="the longest stretch of it",
        command=("critical-path", "--segments"),
        meaning=CriticalPath.to_frame,
    )


UNEXPLAINED = Finding(
    "unexplained", needs=JUDGES, when=_when, short=_short, why=_why, evidence=_evidence, is_caution=True
)
