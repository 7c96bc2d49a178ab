"""What is said of a pipeline whose stages take unequal time."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.change import PredictedChange
from htagraph.findings.changes import ranked
from htagraph.findings.finding import saved_claim
from htagraph.findings.results import Results
from htagraph.findings.slow_stage import SLOW_STAGE, SlowStageClaim
from htagraph.findings.verbs.ranks import shares_command
from tests.findings.claims_by_hand import gained
from tests.queries.test_rank_speed import BATCHES, pipeline


def test_the_claim_gives_what_a_replay_with_equal_stages_gains() -> None:
    (claim,) = SLOW_STAGE.when(Results(pipeline(100, 300, 100)))
    mean, recorded = 500 / 3, 500 + (BATCHES - 1) * 300
    assert claim.figure == pytest.approx(3 * (recorded - (500 + (BATCHES - 1) * mean)), rel=0.1)
    text = SLOW_STAGE.whole(claim)
    assert "stage of rank 1 works 1.19 ms a step" in text
    (line,) = shares_command([claim], ["my job"])
    assert line.startswith("To predict other shares: htagraph what-if 'my job' --scale rank=0")
    assert line.count("--scale") == 3


def test_what_equal_stages_gain_is_given_per_step_as_other_gains_are() -> None:
    """Ten steps of 119 ms gain 138 ms together: 'would save 138.1 ms (12 %)' reads as more than a step."""
    gain = gained(138_100.0, 12.0, steps=10, interval=(135_000.0, 141_000.0))
    change = PredictedChange("equal work in all stages", ("--scale", "rank=1:0.8"), gain)
    stage = SlowStageClaim(
        "slow_stage",
        "1",
        138_100.0,
        "us",
        change=change,
        ranks=(1,),
        own_us=102_200.0,
        least_us=54_100.0,
        most_us=54_100.0,
        stages_beside=1,
        waited_us=61_000.0,
    )
    claim = saved_claim(stage)
    assert SLOW_STAGE.short(claim) == (
        "The pipeline stage of rank 1 works 102.2 ms a step, the other 54.1 ms; the other waits 61.0 ms for it. With "
        "equal stages a step would take 13.8 ms less (12 %)."
    )
    (row,) = ranked([claim])
    assert row.text.endswith("Equal work in all stages: 13.8 ms less per step (12 %).")


def test_of_equal_stages_nothing_is_said() -> None:
    graph = pipeline(100, 100, 100)
    assert SLOW_STAGE.when(Results(graph, slow=hg.stragglers(graph))) == []
