"""Whether unknown clocks and missing partners make comparisons between ranks uncertain."""

from __future__ import annotations

from htagraph.findings.finding import RestsOn
from htagraph.findings.results import Results
from htagraph.findings.unmatched import UNMATCHED, doubts_of
from htagraph.findings.verdict import claims_of
from htagraph.output.reports.changes import what_if_report
from htagraph.whatif.scenario import what_if
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, kernel, launch, load, op


def test_communication_without_a_partner_is_a_doubt() -> None:
    alone = [op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMMUNICATE, 20, 90, 1)]
    results = Results(load({0: alone, 1: [op("aten::mm", 0, 50)]}))
    assert RestsOn.MATCHES in doubts_of(results)
    (claim,) = UNMATCHED.when(results)
    assert (claim.figure, claim.ranks) == (100, (0,))
    assert UNMATCHED.whole(claim) == (
        "Rank 0's communication could not be matched with the others' (100 %): waits for it are unknown, so gains are "
        "upper bounds."
    )
    assert claims_of(results)[0].says == "unmatched"
    outcome = what_if(results.graph).infinite_host().run()
    assert what_if_report([outcome], ["--infinite-host"]).sentences[0].startswith(UNMATCHED.whole(claim))
    assert UNMATCHED.evidence(results, claim).rows.frame["name"].tolist() == [COMMUNICATE]


def test_where_every_call_has_a_partner_there_is_no_doubt() -> None:
    alone = [op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMMUNICATE, 20, 90, 1)]
    assert doubts_of(Results(load(alone))) == frozenset()
    assert doubts_of(Results(graph_of(DATA / "demo"))) == frozenset()
