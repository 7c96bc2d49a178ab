"""A caution: communication calls have no known partner on another rank, so waiting in them looks like transfer."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.findings.finding import Claim, Evidence, Finding, RestsOn, of_activities
from htagraph.findings.limits import MAX_NAMED
from htagraph.findings.results import Results
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS

__all__ = ["UNMATCHED", "doubts_of"]

_MIN_MATCHED = 0.99
"""Share of communication calls with partners; chosen: a few are always cut off by the ends of a recording. Doubled, a
report never says that partners are missing."""


def doubts_of(results: Results) -> frozenset[RestsOn]:
    """Return what makes comparisons between ranks uncertain: unknown clocks, communication without a partner."""
    doubts = {RestsOn.CLOCKS: UNKNOWN_CLOCKS, RestsOn.MATCHES: UNMATCHED}
    return frozenset(rests_on for rests_on, finding in doubts.items() if results.claims(finding.when))


def _when(results: Results) -> list[Claim]:
    graph = results.graph
    acts = graph.activities
    talks = of_kinds(acts.kind, COMMUNICATION)
    members = np.zeros(len(acts), np.bool_)
    if graph.matches is not None:
        members[graph.matches.activity] = True
    alone = talks & ~members
    if len(graph.ranks) < 2 or alone.sum() <= (1 - _MIN_MATCHED) * talks.sum():
        return []
    rows = tuple(np.flatnonzero(alone)[:MAX_NAMED].tolist())
    return [Claim("unmatched", "", int(alone.sum()), "count", rows=rows, facts={"total": int(talks.sum())})]


def _evidence(results: Results, claim: Claim) -> Evidence:
    return Evidence(rows=of_activities(results, claim.rows, "Some of them"), command=("validate",))


def _short(claim: Claim) -> str:
    alone = f"{claim.figure:,.0f} of {claim.facts['total']:,} communication calls have no known partner"
    return f"{alone}, so waiting in them looks like transfer"


UNMATCHED = Finding(
    "unmatched", when=_when, short=_short, evidence=_evidence, is_caution=True,
    advice=lambda _: "See which ranks lack them (htagraph validate), and record all ranks at the same time.",
)  # fmt: skip
