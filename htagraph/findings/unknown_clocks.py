"""A caution: the clocks of some ranks are not known well enough to compare the ranks."""

from __future__ import annotations

from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.findings.finding import MOST_ROWS, Claim, Evidence, Finding, Rows
from htagraph.findings.phrases import and_list, plural, ranks_text
from htagraph.findings.results import Results

__all__ = ["UNKNOWN_CLOCKS"]


def _when(results: Results) -> list[Claim]:
    graph = results.graph
    unknown = sorted(clock.rank for clock in graph.clocks if clock.uncertainty_ns < 0)
    talks = of_kinds(graph.activities.kind, COMMUNICATION)
    if len(graph.ranks) < 2 or not talks.any() or not unknown:
        return []
    facts = {"ranks": unknown, "total": len(graph.ranks)}
    return [Claim("unknown_clocks", ", ".join(map(str, unknown)), len(unknown), "count", facts=facts)]


def _long(claim: Claim) -> str:
    ranks, total = claim.facts["ranks"], claim.facts["total"]
    others = "each other" if len(ranks) == total else "the others"
    return (
        f"The clock{'' if len(ranks) == 1 else 's'} of {plural(len(ranks), 'rank')} ({and_list(map(str, ranks))}) "
        f"cannot be compared with {others}: how long ranks wait for each other, and their shares, are uncertain."
    )


def _short(claim: Claim) -> str:
    ranks = claim.facts["ranks"]
    return f"the clock{'s' if len(ranks) > 1 else ''} of {ranks_text(ranks)} cannot be compared, so waits are uncertain"


def _evidence(results: Results, _claim: Claim) -> Evidence:
    return Evidence(rows=Rows(results.clocks.head(MOST_ROWS), "Clocks of the ranks"))


UNKNOWN_CLOCKS = Finding(
    "unknown_clocks", when=_when, long=_long, short=_short, evidence=_evidence, is_caution=True
)  # fmt: skip
