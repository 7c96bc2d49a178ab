"""A caution: what ranks did is missing in their recordings, or several of these are one file."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import and_list, ranks_text
from htagraph.findings.results import Results
from htagraph.graph.measures.waits import damaged_ranks

__all__ = ["DAMAGED"]

_LACKS = {
    "cut": "cut short", "lost": "{share} of the events lost", "timeless": "all durations are 0",
    "work": "no device work for {share} of the launches",
}  # fmt: skip
"""What is wrong with a recording, by the word that `damaged_ranks` has for it."""


def _when(results: Results) -> list[Claim]:
    damaged, issues = damaged_ranks(results.graph), results.graph.issues
    same = tuple(issue.detail for issue in issues if issue.what == "same_file")
    facts = {"ranks": sorted(damaged), "damaged": damaged, "same": same}
    return [Claim("damaged", ", ".join(map(str, damaged)), len(damaged), "count", facts=facts)] if same or damaged else []


def _short(claim: Claim) -> str:
    damaged, parts = claim.facts["damaged"], []
    for kind, text in _LACKS.items():
        ranks = [rank for rank in claim.facts["ranks"] if damaged[rank][0] == kind]
        shares = [damaged[rank][1] for rank in ranks]
        share = f"{'up to ' if len(set(shares)) > 1 else ''}{100 * max(shares, default=0):.0f} %"
        parts += [f"{ranks_text(ranks)} ({text.format(share=share)})"] if ranks else []
    missing = [
        f"not all that {and_list(parts)} did was recorded, and the time of the rest looks like the host's or like waiting"
    ] if parts else []  # fmt: skip
    return "; ".join((*claim.facts["same"], *missing))


DAMAGED = Finding(
    "damaged", when=_when, short=_short, is_caution=True,
    advice=lambda _: "Record again, and let the profiler finish writing (htagraph validate).",
)  # fmt: skip
