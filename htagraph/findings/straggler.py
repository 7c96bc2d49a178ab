"""One rank makes the others wait."""

from __future__ import annotations

from dataclasses import replace

from htagraph.findings.finding import Claim, Evidence, Finding, in_full, in_short
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.findings.unmatched import doubts_of
from htagraph.findings.waiting import are_waits_known, waits_evidence

__all__ = ["STRAGGLER"]

_CAUSES = {
    "kernels": "its kernels take longer", "host": "its host code takes longer",
    "data_loading": "its data loader takes longer", "launch": "its launch calls take longer",
    "sync": "its blocking calls take longer", "network": "its transfers take longer",
    "collective": "it is late from an earlier collective", "none": "its own work looks like theirs",
}  # fmt: skip
"""Why a rank is late, by the cause that is the largest part of it."""


def _when(results: Results) -> list[Claim]:
    slow = results.slow
    if slow.straggler is None or not are_waits_known(results):
        return []
    ranks = slow.to_frame()
    row = ranks[ranks["rank"] == slow.straggler].iloc[0]
    facts = {"total_us": slow.total_wait_us, "cause": str(row["cause"]), "cause_name": str(row["cause_name"])}
    share, about = float(row["share_percent"]), str(slow.straggler)
    return [Claim("straggler", about, share, "percent", rests_on=doubts_of(results), facts=facts)]


def _long(claim: Claim) -> str:
    cause, name = claim.facts["cause"], claim.facts["cause_name"]
    where = f", mainly in {in_full(name)}" if name else ""
    return (
        f"Rank {claim.about} makes the others wait: it causes {claim.figure:.0f} % of the "
        f"{time_text(claim.facts['total_us'])} spent waiting in collectives (summed over ranks); "
        f"{_CAUSES.get(cause, cause)}{where} (htagraph stragglers)."
    )


def _short(claim: Claim) -> str:
    cause, name = claim.facts["cause"], claim.facts["cause_name"]
    where = f", mainly {in_short(name)}" if name else ""
    return (
        f"Rank {claim.about} makes the others wait: {claim.figure:.0f} % of {time_text(claim.facts['total_us'])} in "
        f"collectives (over all ranks); {_CAUSES.get(cause, cause)}{where}."
    )


def _evidence(results: Results, claim: Claim) -> Evidence:
    trial = ("--fix-straggler", "auto")
    return replace(waits_evidence(results, claim), command=("what-if", *trial), trial=trial)


STRAGGLER = Finding("straggler", when=_when, long=_long, short=_short, evidence=_evidence)
