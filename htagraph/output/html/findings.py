"""The findings: each conclusion in words, with what proves it and what to try."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import sentences, trial
from htagraph.findings.conclusions.findings import CAUTIONS
from htagraph.output.html.evidence import evidence_of
from htagraph.output.html.page import Html, Section, element
from htagraph.output.html.proof import Evidence
from htagraph.output.html.results import Results

__all__ = ["findings", "findings_section"]


def findings(claims: Sequence[Claim]) -> list[tuple[str, list[Claim]]]:
    """Return each sentence with the claims that it words, in the order of a summary.

    Example:
        >>> import htagraph as hg
        >>> summary = hg.summarize(hg.load("data/demo"))
        >>> [sentence for sentence, _ in findings(summary.claims)] == summary.verdict
        True
    """
    found: list[tuple[str, list[Claim]]] = []
    for _, group in groupby(claims, key=lambda claim: claim.says):
        every = list(group)
        lines = sentences(every)
        of_each = [[claim] for claim in every] if len(lines) == len(every) else [every]
        found += zip(lines, of_each, strict=True)
    return found


def findings_section(results: Results) -> Section:
    """Return what the job's summary concludes, with evidence."""
    claims = results.summary.claims
    gains = [claim for claim in claims if claim.says is Says.GAIN]
    parts = [
        _finding(sentence, every, evidence_of(every, results), _half(gains) if every[0].says is Says.GAIN else "")
        for sentence, every in findings(claims)
    ]
    return Section("findings", "Findings", element("div", *parts))


def _half(gains: Sequence[Claim]) -> str:
    """Return what half of the largest gain's time is worth, without the command that tries it."""
    return "".join(trial(gains, ())[:1]).partition(" To try it")[0]


def _finding(sentence: str, claims: Sequence[Claim], evidence: Evidence, half: str) -> Html:
    parts: list[Html] = [element("p", sentence)]
    parts += (
        [element("div", evidence.chart, evidence.table, class_="columns")] if evidence.chart or evidence.table else []
    )
    parts += [element("p", half)] if half else []
    parts += (
        [element("p", "Uncertain, because it rests on ", _rests(claims), ".", class_="note")] if _rests(claims) else []
    )
    links = []
    if evidence.command:
        links.append(element("span", "Try ", element("code", evidence.command)))
    if evidence.trial:  # the panel's script shows the link if there is such a slider
        words = json.dumps(evidence.trial)
        links.append(
            element("a", "Try it on this page", href="#what-if", hidden=True, class_="trial", data_trial=words)
        )
    if evidence.href:
        links.append(element("a", f"In the timeline: {evidence.look}", href=evidence.href))
    parts += [element("p", *links, class_="try")] if links else []
    parts.append(evidence.meaning)
    doubt = " doubt" if claims[0].says in CAUTIONS else ""
    return element("div", *parts, class_=f"finding{doubt}")


def _rests(claims: Sequence[Claim]) -> str:
    """Return what makes claims uncertain, in words; empty where nothing does."""
    if claims[0].says in CAUTIONS:
        return ""
    return " and ".join(sorted({each.value for claim in claims for each in claim.rests_on}))
