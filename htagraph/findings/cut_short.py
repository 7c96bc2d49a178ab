"""A caution: files of ranks end before their events do."""

from __future__ import annotations

from htagraph.findings.finding import Claim, Finding
from htagraph.findings.results import Results

__all__ = ["CUT_SHORT"]

_CUT, _ALL_READ = ("truncated", "gzip_truncated"), "all events were read"
"""Issues of a file that ends early, and what their text says where only its end is missing."""


def _when(results: Results) -> list[Claim]:
    issues = results.graph.issues
    cut = sorted({issue.rank for issue in issues if issue.what in _CUT and _ALL_READ not in issue.detail})
    return [Claim("cut_short", ", ".join(map(str, cut)), len(cut), "count", facts={"ranks": cut})] if cut else []


def _short(claim: Claim) -> str:
    ranks = claim.facts["ranks"]
    who = f"rank {ranks[0]}'s file is" if len(ranks) == 1 else f"the files of {len(ranks)} ranks are"
    return (
        f"{who} cut short, and the time of what is missing, such as device work, looks like the host's or like waiting"
    )


CUT_SHORT = Finding(
    "cut_short",
    when=_when,
    short=_short,
    is_caution=True,
    advice=lambda _: "Record again, and let the profiler finish writing (htagraph validate).",
)
