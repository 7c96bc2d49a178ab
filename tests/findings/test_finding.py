"""Whether contradictions are found, gains worded, trials made commands, and places of evidence lie in the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from htagraph.findings.finding import (
    Claim,
    Trial,
    contradictions,
    in_full,
    in_short,
    is_sure,
    less_text,
    likely,
    saves_text,
)
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of, stated
from htagraph.queries.inputs import window_us
from tests.findings.claims_by_hand import gain
from tests.reach import DATASETS, graph_of, label


def test_a_trial_is_a_what_if_on_the_same_files() -> None:
    assert Trial(1.0, "x", ("--scale", "a:0.5")).command(["my job"]) == "htagraph what-if 'my job' --scale a:0.5"


def test_names_are_shorter_in_brief() -> None:
    name = "a" * 100
    assert (len(in_full(name)), len(in_short(name))) == (60, 32)


def bound(**facts: Any) -> Claim:
    return Claim("bound", "host", 70.0, "percent", facts={"unexplained_percent": 8.0, **facts})


def claimed_gain(figure: float = 10.0, interval: tuple[float, float] | None = (8.0, 12.0), **facts: Any) -> Claim:
    return Claim("gain", "aten::mm", figure, "us", interval=interval, facts={"makespan_us": 100.0, **facts})


def test_claims_that_agree_contradict_nothing() -> None:
    unexplained = Claim("unexplained", "path", 8.0, "percent")
    assert contradictions([bound(), claimed_gain(half_us=5.0), unexplained]) == []
    assert contradictions([]) == []


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([Claim("device_idle", "other", 101.0, "percent")], "no share"),
        ([Claim("device_idle", "other", -1.0, "percent")], "no share"),
        ([bound(), bound()], "bound by host and by host"),
        ([claimed_gain(20.0)], "not between"),
        ([claimed_gain(120.0, None)], "more than the job takes"),
        ([claimed_gain(half_us=11.0)], "half of it gains more"),
        ([bound(), Claim("unexplained", "path", 67.0, "percent")], "unexplained 67 % and 8 %"),
        ([bound(by_workers=True), claimed_gain()], "the loader's workers set the pace"),
        ([Claim("straggler", "1", 90.0, "percent"), Claim("waiting", "", 9.0, "us")], "a straggler, and none"),
        ([Claim("straggler", rank, 50.0, "percent") for rank in "12"], "several stragglers"),
    ],
)
def test_a_contradiction_is_named(claims: list[Claim], words: str) -> None:
    assert any(words in problem for problem in contradictions(claims))


def test_a_faster_loader_is_no_contradiction_to_being_bound_by_it() -> None:
    assert contradictions([bound(by_workers=True), claimed_gain(loader=True)]) == []


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
        if not finding.is_caution:
            assert evidence.chart.bars or evidence.chart.stacks, finding.name
            assert len(evidence.rows.frame)
            assert evidence.meaning
            assert evidence.command


def test_a_gain_is_per_step_where_there_are_steps() -> None:
    assert less_text(gain("", 3e5, 53.0)) == "the job would take 300.0 ms less (53 %)"
    assert less_text(gain("", 3e5, 53.0, steps=3), "; try it") == "a step would take 100.0 ms less (53 %; try it)"


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
