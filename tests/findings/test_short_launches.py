"""Whether launches that take longer than their work are told, where devices wait for many of them."""

from __future__ import annotations

import pytest

from htagraph.findings.results import Results
from htagraph.findings.short_launches import SHORT_LAUNCHES
from tests.strategies import kernel, launch, load


@pytest.mark.parametrize(("count", "claims"), [(150, 1), (50, 0)])
def test_it_is_said_of_many_launches(count: int, claims: int) -> None:
    events = []
    for number in range(count):
        events += [launch(20 * number, 18, number + 1), kernel("tiny", 20 * number + 19, 3, number + 1)]
    results = Results(load(events))
    found = SHORT_LAUNCHES.when(results)
    assert [claim.figure for claim in found] == [100.0] * claims
    for claim in found:
        evidence = SHORT_LAUNCHES.evidence(results, claim)
        assert evidence.rows.frame[["work", "calls"]].to_numpy().tolist() == [["tiny", count]]
        assert evidence.chart.text(3.0) == "3 calls"
