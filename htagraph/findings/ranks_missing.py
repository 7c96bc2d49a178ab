"""A caution: some ranks of the job were not read, so waiting for them looks like communication."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding, RestsOn
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list
from htagraph.findings.results import Results
from htagraph.graph.measures.waits import ranks_not_read

__all__ = ["RANKS_MISSING"]


def _when(results: Results) -> list[Claim]:
    read, missing = results.graph.ranks, list(ranks_not_read(results.graph))
    if not missing:
        return []
    size, about = int(results.inputs["world_size"].max()), str(read[0]) if len(read) == 1 else ""
    facts = {"read": len(read), "missing": missing}
    return [Claim("ranks_missing", about, size, "count", rests_on=frozenset({RestsOn.OTHER_RANKS}), facts=facts)]


def _short(claim: Claim) -> str:
    if claim.about:
        only = f"only rank {claim.about} of {claim.figure:.0f} was read"
        return f"{only}, so waiting for the others looks like communication"
    missing, read = claim.facts["missing"], f"{claim.facts['read']:,} of {claim.figure:,.0f} ranks were read"
    names = f" (not {and_list(map(str, missing))})" if len(missing) <= MAX_LISTED else ""
    return f"{read}{names}, so waiting for others looks like transfer"


def _why(claim: Claim) -> str:
    """Return that waits for ranks that were not read look like transfers."""
    if claim.about:
        return f"how much of communication is waiting: only rank {claim.about} of {claim.figure:,.0f} was read"
    read = claim.facts["read"]
    return f"how much of communication is waiting: only {read:,} of {claim.figure:,.0f} ranks were read"


RANKS_MISSING = Finding(
    "ranks_missing", when=_when, short=_short, why=_why, is_caution=True,
    advice=lambda _: "Record and read all ranks.",
)  # fmt: skip
