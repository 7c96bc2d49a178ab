"""What sections share is computed once, and addresses are in nanoseconds."""

from __future__ import annotations

from htagraph.findings.evidence import Place
from htagraph.output.html.results import PageResults
from tests.reach import DATA, graph_of


def test_the_summary_is_made_of_the_same_results() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["data/demo"])
    assert results.summary is results.summary
    assert results.summary.tables["interruptions"] is results.interruptions


def test_addresses_name_the_timeline_and_nanoseconds() -> None:
    results = PageResults(graph_of(DATA / "demo"), ["x"], "before")
    assert results.at(7) == results.address(Place(7)) == "#on=before&event=7"
    assert results.between(1.5, 2.0, 3) == results.address(Place(3, 1.5, 2.0)) == "#on=before&from=1500&to=2000&event=3"
    assert results.address(None) == ""
