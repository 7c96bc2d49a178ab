"""A caution: the clocks of some ranks are not known well enough to compare the ranks."""

from __future__ import annotations

from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.findings.finding import Claim, Evidence, Finding, Rows
from htagraph.findings.limits import MOST_ROWS
from htagraph.findings.phrases import ranks_text
from htagraph.findings.results import Results
from htagraph.graph.measures.waits import ranks_not_read

__all__ = ["UNKNOWN_CLOCKS"]


def _when(results: Results) -> list[Claim]:
    graph = results.graph
    # a rank without events has no clock
    absent = ranks_not_read(graph)
    uncertain = {clock.rank for clock in graph.clocks if clock.uncertainty_ns < 0}
    unknown = sorted(uncertain.difference(absent))
    talks = of_kinds(graph.activities.kind, COMMUNICATION)
    if len(graph.ranks) < 2 or not talks.any() or not unknown:
        return []
    names = map(
        str,
        unknown,
    )
    about = ", ".join(names)
    return [Claim("unknown_clocks", about, len(unknown), "count", ranks=tuple(unknown))]


def _short(claim: Claim) -> str:
    s = "s" if len(claim.ranks) > 1 else ""
    return f"the clock{s} of {ranks_text(claim.ranks)} cannot be compared, so waits are uncertain"


def _why(claim: Claim) -> str:
    """Return whose clocks cannot be compared."""
    return f"how the clocks of {ranks_text(claim.ranks)} compare with the others"


UNKNOWN_CLOCKS = Finding(
    "unknown_clocks", when=_when, short=_short, why=_why, is_caution=True,
    evidence=lambda results, _: Evidence(rows=Rows(results.clocks.head(MOST_ROWS), "Clocks of the ranks")),
)  # fmt: skip
