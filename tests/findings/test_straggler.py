"""Whether the straggler is named with its cause, and can be tried."""

from __future__ import annotations

from htagraph.findings.finding import Claim
from htagraph.findings.results import Results
from htagraph.findings.straggler import STRAGGLER
from tests.reach import DATA, graph_of


def test_the_straggler_is_named_with_its_cause() -> None:
    facts = {"total_us": 500.0, "cause": "host", "cause_name": "aten::mm"}
    claim = Claim("straggler", "1", 90.0, "percent", facts=facts)
    sentence = STRAGGLER.long(claim)
    assert sentence.startswith("Rank 1 makes the others wait: it causes 90 % of the 500.0 µs spent waiting")
    assert "its host code takes longer, mainly in aten::mm" in sentence
    assert STRAGGLER.short(claim) == (
        "Rank 1 makes the others wait: 90 % of 500.0 µs in collectives (over all ranks); its host code takes longer, "
        "mainly aten::mm."
    )


def test_the_demos_straggler_can_be_as_fast_as_its_peers() -> None:
    results = Results(graph_of(DATA / "demo"))
    (claim,) = STRAGGLER.when(results)
    assert claim.about == "2"
    assert STRAGGLER.evidence(results, claim).command == ("what-if", "--fix-straggler", "auto")
