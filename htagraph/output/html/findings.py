"""The findings: each conclusion in words, with what proves it and what to try."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from htagraph.findings.claim import Claim
from htagraph.findings.evidence import Chart, Evidence, Place, Rows
from htagraph.findings.finding import Finding
from htagraph.findings.gain import GAIN, half_sentence
from htagraph.findings.phrases import command_line
from htagraph.findings.verdict import stated
from htagraph.output.html.charts import Bar, Part, bars, stacked
from htagraph.output.html.definitions import definition
from htagraph.output.html.page import NOTHING, Html, Section, element
from htagraph.output.html.results import PageResults
from htagraph.output.html.tables import table_of

__all__ = ["drawn", "evidence_of", "findings_section"]


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


def drawn(chart: Chart, results: PageResults | None = None) -> Html:
    """Return a chart as markup; without results, no bar leads to the timeline."""
    if chart.stacks:
        stacks = [(word, [Part(*part) for part in parts]) for word, parts in chart.stacks]
        return stacked(stacks, title=chart.title, text=chart.text)
    rows = [Bar(bar.word, bar.value, bar.interval, results.address(bar.place) if results else "") for bar in chart.bars]
    return bars(rows, title=chart.title, color=chart.color) if rows else NOTHING


def _shown(results: PageResults, finding: Finding, claims: Sequence[Claim]) -> Html:
    """Return a finding: its sentence, what proves it, what makes it uncertain and what to try."""
    evidence = evidence_of(results, finding, claims)
    chart, table = drawn(evidence.chart, results), _table(results, evidence.rows)
    notes = [element("p", note) for note in evidence.notes]
    table = element("div", table, *notes) if notes else table
    parts: list[Html] = [element("p", finding.long(*claims))]
    parts += [element("div", chart, table, class_="columns")] if chart or table else []
    parts += [element("p", half) for half in half_sentence(claims)] if finding is GAIN else []
    rests = " and ".join(sorted({each.value for claim in claims for each in claim.rests_on}))
    if rests and not finding.is_caution:
        parts += [element("p", "Uncertain, because it rests on ", rests, ".", class_="note")]
    links = list(_links(results, evidence))
    parts += [element("p", *links, class_="try")] if links else []
    parts += [definition(evidence.meaning)] if evidence.meaning else []
    return element("div", *parts, class_=f"finding{' doubt' if finding.is_caution else ''}")


def _table(results: PageResults, rows: Rows) -> Html:
    links = [results.address(place) for place in rows.places]
    link = links.__getitem__ if links else None
    return table_of(rows.frame, caption=rows.caption, headings=rows.headings, link=link)


def _links(results: PageResults, evidence: Evidence) -> Iterator[Html]:
    """Yield what to try, the slider that has it too, and where it is in the timeline."""
    if evidence.command:
        verb, *options = evidence.command
        yield element("span", "Try ", element("code", command_line(verb, results.words, *options)))
    if evidence.trial:  # the panel's script shows the link if there is such a slider
        words = json.dumps(evidence.trial)
        yield element("a", "Try it on this page", href="#what-if", hidden=True, class_="trial", data_trial=words)
    if evidence.place:
        yield element("a", f"In the timeline: {evidence.look}", href=results.address(evidence.place))
