"""Whether gains are worded, trials made commands, and places of evidence lie in the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.findings.finding import Trial, in_short, is_sure, less_text, likely, saves_text
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of, stated
from htagraph.queries.inputs import window_us
from tests.findings.claims_by_hand import gain
from tests.reach import DATASETS, graph_of, label


def test_a_trial_is_a_what_if_on_the_same_files() -> None:
    assert Trial(1.0, "x", ("--scale", "a:0.5")).command(["my job"]) == "htagraph what-if 'my job' --scale a:0.5"


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
            assert evidence.command or any(map(finding.trial, claims)) or finding.name == "gain"


def test_a_gain_is_per_step_where_there_are_steps() -> None:
    assert less_text(gain("", 3e5, 53.0)) == "the job would take 300.0 ms less (53 %)"
    assert less_text(gain("", 3e5, 53.0, steps=3)) == "a step would take 100.0 ms less (53 %)"


@pytest.mark.parametrize(
    ("interval", "shown", "sure"),
    [
        (None, "", True),
        ((280_000.0, 320_000.0), "", True),
        ((100_000.0, 320_000.0), "; likely 50.0 ms to 160.0 ms", True),
        ((-10_000.0, 320_000.0), "; likely 0 to 160.0 ms", False),
    ],
)
def test_an_interval_is_said_where_it_is_wide(interval: tuple[float, float] | None, shown: str, *, sure: bool) -> None:
    claim = gain("", 3e5, 53.0, steps=2, interval=interval)
    assert likely(claim) == shown
    assert is_sure(claim) == sure
    assert saves_text(claim) == f"saves {'' if sure else 'up to '}150.0 ms per step"
