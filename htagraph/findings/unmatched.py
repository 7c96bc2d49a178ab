"""Communication of some ranks could not be matched with that of others, so nobody knows who waited for whom there."""

from __future__ import annotations

import numpy as np

from htagraph.findings.finding import Claim, Evidence, Finding, RestsOn, of_activities
from htagraph.findings.limits import MAX_NAMED
from htagraph.findings.phrases import ranks_text
from htagraph.findings.results import Results
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import unmatched
from htagraph.trace.readers import recorder_of

__all__ = ["UNMATCHED", "doubts_of", "unmatched_sentences"]


def doubts_of(results: Results) -> frozenset[RestsOn]:
    """Return what makes comparisons between ranks uncertain: unknown clocks, communication without a partner."""
    doubts = {RestsOn.CLOCKS: UNKNOWN_CLOCKS, RestsOn.MATCHES: UNMATCHED}
    return frozenset(rests_on for rests_on, finding in doubts.items() if results.claims(finding.when))


def _claims(graph: DependencyGraph) -> list[Claim]:
    shares, alone = unmatched(graph)
    ranks = sorted(shares, key=lambda rank: -shares[rank])
    if not ranks:
        return []
    rows = tuple(np.flatnonzero(alone)[:MAX_NAMED].tolist())
    about = ", ".join(map(str, ranks))
    percent = 100 * shares[ranks[0]]
    recorder = recorder_of(graph.traces.values())
    return [Claim("unmatched", about, percent, "percent", rows=rows, ranks=tuple(ranks), recorder=recorder)]


def _short(claim: Claim) -> str:
    ranks = claim.ranks
    whose = ranks_text(sorted(ranks)).capitalize()
    owner = f"{whose}'s communication" if len(ranks) == 1 else f"{whose}: communication"
    share = f"{'' if len(ranks) == 1 else 'up to '}{claim.figure:.0f} %"
    return (
        f"{owner} could not be matched with the others' ({share}): waits for {'it' if len(ranks) == 1 else 'them'} "
        "are unknown, so gains are upper bounds."
    )


def _why(claim: Claim) -> str:
    """Return how much communication has no known partner."""
    ranks = claim.ranks
    at_most = "" if len(ranks) == 1 else "up to "
    wait = "waits" if len(ranks) == 1 else "wait"
    return f"whom {ranks_text(sorted(ranks))} {wait} for in {at_most}{claim.figure:.0f} % of communication"


def _evidence(results: Results, claim: Claim) -> Evidence:
    rows = of_activities(results, claim.rows, "Some of it")
    return Evidence(rows=rows, command=("validate",))


def _advice(claim: Claim) -> str:
    """Return how to record the partners of communication."""
    how = f" with {claim.recorder.setting('shapes')}, or with a newer PyTorch, which writes process-group arguments"
    return f"Record all ranks at the same time{claim.recorder.of_pytorch(how)}."


UNMATCHED = Finding(
    "unmatched",
    when=lambda results: _claims(results.graph),
    short=_short,
    why=_why,
    is_unknown=True,
    evidence=_evidence,
    advice=_advice,
)


def unmatched_sentences(graph: DependencyGraph) -> list[str]:
    """Return the first sentence about a prediction on a graph whose communication is not matched; none if it is."""
    return [f"{UNMATCHED.whole(claim)} {UNMATCHED.advice(claim)}" for claim in _claims(graph)]
