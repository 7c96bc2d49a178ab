"""What proves a finding is there: activities that exist, times inside the job, commands that can be read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from htagraph.findings.claim import Claim, Says
from htagraph.output.html.evidence import evidence_of
from htagraph.output.html.findings import findings
from htagraph.output.html.results import Results
from tests.queries.test_interruptions import MANY, host_job
from tests.reach import DATASETS, graph_of, label
from tests.strategies import load

_DOUBTS = (
    Says.NOTHING_RECORDED, Says.PARTLY_DEVICE, Says.UNKNOWN_CLOCKS, Says.UNMATCHED, Says.ONE_RANK, Says.RANKS_MISSING,
)  # fmt: skip
"""Claims about what was not recorded, of which there is little to show."""


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_addresses_are_of_activities_and_times_of_the_job(path: Path) -> None:
    results = Results(graph_of(path), [str(path)])
    for _, claims in findings(results.summary.claims):
        evidence = evidence_of(claims, results)
        for address in [evidence.href, *re.findall(r'href="([^"]*)"', evidence.table)]:
            numbers = {key: int(number) for key, number in re.findall(r"(event|from|to)=(-?\d+)", address)}
            assert 0 <= numbers.get("event", 0) < len(results.graph.activities)
            assert -1 <= numbers.get("from", 0) <= numbers.get("to", 0) <= 1000 * results.summary.window_us + 1
        if claims[0].says not in _DOUBTS:
            assert evidence.chart, claims[0]
            assert evidence.table
            assert evidence.meaning
            assert evidence.command
        if evidence.command:
            assert shlex.split(evidence.command)[0] == "htagraph"


def test_the_largest_gain_is_tried_with_half_its_time() -> None:
    results = Results(graph_of(DATASETS[0]), ["job"])
    gains = [claim for claim in results.summary.claims if claim.says is Says.GAIN]
    assert evidence_of(gains, results).command == f"htagraph what-if job --scale {gains[0].facts['target']}:0.5"


def test_interruptions_are_shown_where_they_are() -> None:
    results = Results(load(host_job(MANY)), ["job"])
    claims = [claim for claim in results.summary.claims if claim.says is Says.INTERRUPTED]
    evidence = evidence_of(claims, results)
    assert evidence.command == "htagraph what-if job --no-interruptions"
    assert evidence.table.count("aten::op") == 5
    assert evidence.href


def test_a_claim_without_evidence_has_none() -> None:
    results = Results(graph_of(DATASETS[0]), ["job"])
    assert evidence_of([Claim(Says.ONE_RANK, "", 1.0, "count")], results).table == ""
