"""The findings: each conclusion in words, with what proves it and what to try; and what all sections share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from htagraph.findings.finding import Claim, Evidence, Finding, Place, Trial
from htagraph.findings.phrases import command_line
from htagraph.findings.results import Results
from htagraph.findings.verdict import sentences, stated
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.charts import drawn
from htagraph.output.html.page import Html, Section, element
from htagraph.output.html.tables import definition, table_of
from htagraph.output.summary import Summary, summary_of

__all__ = ["PageResults", "evidence_of", "findings_section"]


class PageResults(Results):
    """The results that a report shows, each computed once.

    `words` are those of a command line that read the same; `key` is the id of the timeline that links lead to.
    """

    def __init__(self, graph: DependencyGraph, words: Sequence[str], key: str = "job") -> None:
        super().__init__(graph)
        self.words, self.key = words, key

    @cached_property
    def summary(self) -> Summary:
        """The summary of the job."""
        return summary_of(self)

    def address(self, place: Place | None) -> str:
        """Return the address of a place in the timeline; empty for nowhere in particular."""
        if place is None:
            return ""
        selected = f"&event={place.activity}"
        if place.start_us is None:
            return f"#on={self.key}{selected}"
        stretch = f"&from={round(1000 * place.start_us)}&to={round(1000 * place.end_us)}"
        return f"#on={self.key}{stretch}{selected if place.activity >= 0 else ''}"


def findings_section(results: PageResults) -> Section:
    """Return what the job's summary concludes, with evidence."""
    parts = [_shown(results, finding, claims) for finding, claims in stated(results.summary.claims)]
    return Section("findings", "Findings", element("div", *parts))


def evidence_of(results: PageResults, finding: Finding, claims: Sequence[Claim]) -> Evidence:
    """Return what proves the claims of a sentence; at least, where the first activity is that a claim rests on."""
    evidence = finding.evidence(results, *claims)
    rows = [row for claim in claims for row in claim.rows]
    place, look = (evidence.place, evidence.look) if evidence.place or not rows else (Place(rows[0]), "one of them")
    return replace(evidence, place=place, look=look)


def _shown(results: PageResults, finding: Finding, claims: Sequence[Claim]) -> Html:
    """Return a finding: its sentence, what proves it, what makes it uncertain and what to try."""
    evidence = evidence_of(results, finding, claims)
    rows = evidence.rows
    chart = drawn(evidence.chart, lambda bar: results.address(bar.place))
    links = [results.address(place) for place in rows.places]
    table = table_of(rows.frame, caption=rows.caption, headings=rows.headings, links=links)
    notes = [element("p", note) for note in evidence.notes]
    table = element("div", table, *notes) if notes else table
    parts: list[Html] = [element("p", sentence) for sentence in sentences(claims)]
    parts += [element("div", chart, table, class_="columns")] if chart or table else []
    rests = " and ".join(sorted({each.value for claim in claims for each in claim.rests_on}))
    if rests and not finding.is_caution:
        parts += [element("p", "Uncertain, because it rests on ", rests, ".", class_="note")]
    tries = list(_tries(results, evidence, next(filter(None, map(finding.trial, claims)), None)))
    parts += [element("p", *tries, class_="try")] if tries else []
    parts += [definition(evidence.meaning)] if evidence.meaning else []
    return element("div", *parts, class_=f"finding{' doubt' if finding.is_caution else ''}")


def _tries(results: PageResults, evidence: Evidence, trial: Trial | None) -> Iterator[Html]:
    """Yield what to try, the slider that has it too, and where it is in the timeline."""
    command = ("what-if", *trial.options) if trial else evidence.command
    if command:
        verb, *options = command
        yield element("span", "Try ", element("code", command_line(verb, results.words, *options)))
    if trial:  # the panel's script shows the link if there is such a slider
        words = json.dumps([*trial.options[0].split("=", 1), *trial.options[1:]])
        yield element("a", "Try it on this page", href="#what-if", hidden=True, class_="trial", data_trial=words)
    if evidence.place:
        yield element("a", f"In the timeline: {evidence.look}", href=results.address(evidence.place))
