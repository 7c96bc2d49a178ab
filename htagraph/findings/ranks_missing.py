"""A caution: some ranks of the job were not read, so waiting for them looks like communication."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding, RestsOn, always
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


def _long(claim: Claim) -> str:
    if claim.about:
        return (
            f"Only rank {claim.about} of {claim.figure:.0f} was read, so waiting for the others looks like "
            "communication."
        )
    missing = claim.facts["missing"]
    names = f" (not {and_list(map(str, missing))})" if len(missing) <= 2 * MAX_LISTED else ""
    return (
        f"{claim.facts['read']:,} of {claim.figure:,.0f} ranks were read{names}: waiting for one that was not read "
        "looks like transfer, and nothing names it as late."
    )


def _short(claim: Claim) -> str:
    if claim.about:
        only = f"only rank {claim.about} of {claim.figure:.0f} was read"
        return f"{only}, so waiting for the others looks like communication"
    return f"{claim.facts['read']:,} of {claim.figure:,.0f} ranks were read, so waiting for others looks like transfer"


RANKS_MISSING = Finding(
    "ranks_missing", when=_when, long=_long, short=_short, is_caution=True,
    advice=always("Record and read all ranks."),
)  # fmt: skip
