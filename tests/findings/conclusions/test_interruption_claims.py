"""What is said of a job whose host code is interrupted."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.claim import Says
from htagraph.findings.conclusions.findings import findings, trial_of
from htagraph.findings.conclusions.interruption_claims import interruption_claims
from tests.queries.test_interruptions import MANY, host_job
from tests.strategies import load


def test_the_claim_gives_what_a_replay_without_them_gains() -> None:
    graph = load(host_job(MANY))
    (claim,) = interruption_claims(graph)
    assert claim.figure == hg.what_if(graph).no_interruptions().run().saved_ns / 1000
    assert claim.interval is not None
    assert claim.interval[0] <= claim.figure <= claim.interval[1]
    assert (claim.facts["count"], claim.facts["places"], claim.facts["counts"]) == (6, 6, {0: 3, 1: 3})


def test_a_summary_says_it_and_gives_the_command_first() -> None:
    summary = hg.summarize(load(host_job(MANY)))
    said, _ = findings(summary.claims)
    assert said[1].startswith("Host code is interrupted 3 times on each rank, for ")
    assert "Without that, a step would take " in said[1]
    best = trial_of(summary.claims, ["x"])
    assert best is not None
    assert best.command == "htagraph what-if x --no-interruptions"
    (long,) = [line for line in summary.verdict if "interrupted" in line and "garbage collector" in line]
    assert "in 6 different places" in long
    assert len(summary.tables["interruptions"]) == len(summary.whole()["interruptions"]) == 6


def test_an_interrupted_operator_is_not_named_as_what_the_host_does() -> None:
    claims = hg.summarize(load(host_job(MANY))).claims
    assert [claim for claim in claims if claim.says is Says.HOST_PAUSE] == []
    gains = [claim for claim in claims if claim.says is Says.GAIN]
    assert all(claim.facts["interrupted"] for claim in gains)
    assert "interruptions of host code" not in [claim.about for claim in gains]


def test_of_interruptions_that_cost_little_nothing_is_said() -> None:
    stops = {(0, number, 9 * call): 1_000 for number, call in enumerate((9, 7, 5, 3, 2, 6))}
    little = load(host_job(stops, ranks=1, steps=6, calls=110))
    assert len(hg.interruptions(little)) == len(stops)
    assert interruption_claims(little) == []


@pytest.mark.parametrize("stops", [{}, {(0, 0, 20): 30_000}])
def test_of_none_and_of_one_nothing_is_said(stops: dict[tuple[int, int, int], int]) -> None:
    assert interruption_claims(load(host_job(stops))) == []
