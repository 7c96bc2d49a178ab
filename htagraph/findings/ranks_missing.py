"""A caution: some ranks of the job were not read, so waiting for them looks like communication."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.findings.finding import Claim, Finding, RestsOn
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list
from htagraph.findings.results import Results
from htagraph.graph.measures.waits import ranks_not_read

__all__ = ["RANKS_MISSING", "RanksMissingClaim"]


@dataclass(frozen=True, kw_only=True)
class RanksMissingClaim(Claim):
    """Ranks were not read; the figure is how many ranks the job has.

    It is about the only rank that was read, or about nothing where several were.
    """

    read: int
    """How many ranks were read."""
    missing: tuple[int, ...]
    """The ranks that were not read."""


def _when(results: Results) -> list[RanksMissingClaim]:
    missing = tuple(ranks_not_read(results.graph))
    if not missing:
        return []
    read = [rank for rank in results.graph.ranks if rank not in missing]
    about = str(read[0]) if len(read) == 1 else ""
    size = max(int(results.inputs["world_size"].max()), len(results.graph.ranks))
    rests_on = frozenset({RestsOn.OTHER_RANKS})
    claim = RanksMissingClaim("ranks_missing", about, size, "count", rests_on=rests_on, read=len(read), missing=missing)
    return [claim]


def _short(claim: RanksMissingClaim) -> str:
    if claim.about:
        only = f"only rank {claim.about} of {claim.figure:.0f} was read"
        return f"{only}, so waiting for the others looks like communication"
    missing, read = claim.missing, f"{claim.read:,} of {claim.figure:,.0f} ranks were read"
    names = f" (not {and_list(map(str, missing))})" if len(missing) <= MAX_LISTED else ""
    return f"{read}{names}, so waiting for others looks like transfer"


def _why(claim: RanksMissingClaim) -> str:
    """Return that waits for ranks that were not read look like transfers."""
    if claim.about:
        return f"how much of communication is waiting: only rank {claim.about} of {claim.figure:,.0f} was read"
    return f"how much of communication is waiting: only {claim.read:,} of {claim.figure:,.0f} ranks were read"


RANKS_MISSING = Finding(
    "ranks_missing", when=_when, short=_short, why=_why, is_caution=True,
    advice=lambda _: "Record and read all ranks.",
)  # fmt: skip
