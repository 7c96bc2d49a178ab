"""Findings are the sentences of the summary, in its order, with what proves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.output.html.findings import findings, findings_section
from htagraph.output.html.page import text
from htagraph.output.html.results import Results
from tests.reach import DATASETS, graph_of, label


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_findings_are_the_verdict(path: Path) -> None:
    results = Results(graph_of(path), [str(path)])
    verdict = results.summary.verdict
    assert [sentence for sentence, _ in findings(results.summary.claims)] == verdict
    body = findings_section(results).body
    places = [body.index(f"<p>{text(sentence)}</p>") for sentence in verdict]
    assert places == sorted(places)


def test_each_claim_is_worded_once() -> None:
    results = Results(graph_of(DATASETS[0]), ["job"])
    assert [claim for _, claims in findings(results.summary.claims) for claim in claims] == list(results.summary.claims)
