"""Whether gains are worded, trials made commands, and places of evidence lie in the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.findings.finding import in_short
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of, stated
from htagraph.queries.inputs import window_us
from tests.reach import DATASETS, graph_of, label


def test_names_are_shorter_in_brief() -> None:
    assert len(in_short("a" * 100)) == 32


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_places_are_of_activities_and_times_of_the_job(path: Path) -> None:
    results = Results(graph_of(path))
    for finding, claims in stated(claims_of(results)):
        evidence = finding.evidence(results, *claims)
        places = [evidence.place, *evidence.rows.places, *(bar.place for bar in evidence.chart.bars)]
        for place in filter(None, places):
            assert 0 <= place.activity < len(results.graph.activities)
            start, end = (0.0, 0.0) if place.start_us is None else (place.start_us, place.end_us)
            assert -0.001 <= start <= end <= window_us(results.graph) + 0.001
        if not finding.is_caution and finding.name != "remedy":
            assert evidence.chart.bars or evidence.chart.stacks, finding.name
            assert len(evidence.rows.frame)
            assert evidence.meaning
            assert evidence.command or any(claim.change for claim in claims) or finding.name == "gain"
