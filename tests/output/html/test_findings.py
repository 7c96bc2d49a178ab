"""Findings are the sentences of the summary, in its order, with what proves them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from htagraph.findings.finding import Claim, Evidence, Place
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.verdict import stated
from htagraph.output.html.findings import PageResults, evidence_of, findings_section
from htagraph.output.html.page import text
from tests.reach import DATA, DATASETS, graph_of, label


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_findings_are_the_verdict_with_commands_and_addresses(path: Path) -> None:
    results = PageResults(graph_of(path), [str(path)])
    body = findings_section(results).body
    places = [body.index(f"<p>{text(sentence)}</p>") for sentence in results.summary.verdict]
    assert places == sorted(places)
    assert all(shlex.split(command)[0] == "htagraph" for command in re.findall(r"<code>([^<]*)</code>", body))
    for address in re.findall(r'href="(#on=[^"]*)"', body):
        numbers = {key: int(number) for key, number in re.findall(r"(event|from|to)=(-?\d+)", address)}
        assert 0 <= numbers.get("event", 0) < len(results.graph.activities)
        assert -1 <= numbers.get("from", 0) <= numbers.get("to", 0) <= 1000 * results.summary.window_us + 1


def test_what_has_only_activities_leads_to_the_first_of_them() -> None:
    results = PageResults(graph_of(DATASETS[0]), ["job"])
    for finding, claims in stated(results.summary.claims):
        evidence = evidence_of(results, finding, claims)
        assert bool(evidence.place) == bool(evidence.look and results.address(evidence.place))
    none = Claim("ranks_missing", "", 1.0, "count")
    assert evidence_of(results, RANKS_MISSING, [none]) == Evidence()
    known = Claim("ranks_missing", "", 1.0, "count", rows=(7,))
    assert evidence_of(results, RANKS_MISSING, [known]).place == Place(7)


def test_the_summary_is_made_of_the_same_results() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["data/demo"])
    assert results.summary is results.summary
    assert results.summary.tables["interruptions"] is results.interruptions


def test_addresses_name_the_timeline_and_nanoseconds() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["x"], "before")
    assert results.address(Place(7)) == "#on=before&event=7"
    assert results.address(Place(3, 1.5, 2.0)) == "#on=before&from=1500&to=2000&event=3"
    assert results.address(None) == ""
