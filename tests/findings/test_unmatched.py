"""Whether unknown clocks and missing partners make comparisons between ranks uncertain."""

from __future__ import annotations

from htagraph.findings.finding import RestsOn
from htagraph.findings.results import Results
from htagraph.findings.unmatched import UNMATCHED, doubts_of
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, kernel, launch, load, op


def test_communication_without_a_partner_is_a_doubt() -> None:
    alone = [op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMMUNICATE, 20, 90, 1)]
    results = Results(load({0: alone, 1: [op("aten::mm", 0, 50)]}))
    assert RestsOn.MATCHES in doubts_of(results)
    (claim,) = UNMATCHED.when(results)
    assert claim.figure == claim.facts["total"] == 1
    assert UNMATCHED.whole(claim).startswith("1 of 1 communication calls have no known partner, so waiting")
    assert UNMATCHED.evidence(results, claim).rows.frame["name"].tolist() == [COMMUNICATE]


def test_where_every_call_has_a_partner_there_is_no_doubt() -> None:
    alone = [op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMMUNICATE, 20, 90, 1)]
    assert doubts_of(Results(load(alone))) == frozenset()
    assert doubts_of(Results(graph_of(DATA / "demo"))) == frozenset()
