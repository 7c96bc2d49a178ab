"""What is said of a pipeline whose stages take unequal time."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.output.claim_sentences import sentences
from htagraph.output.stage_claims import stage_claims
from htagraph.queries.claim import Claim, Says, contradictions
from tests.queries.test_slow_stages import BATCHES, pipeline


def test_the_claim_gives_what_a_replay_with_equal_stages_gains() -> None:
    graph = pipeline(100, 300, 100)
    (claim,) = stage_claims(graph, hg.stragglers(graph))
    mean, recorded = 500 / 3, 500 + (BATCHES - 1) * 300
    assert claim.figure == pytest.approx(3 * (recorded - (500 + (BATCHES - 1) * mean)), rel=0.1)
    (text,) = sentences([claim])
    assert "that of rank 1 works 1.19 ms a step" in text
    assert "no straggler" in text
    assert text.count("--scale rank=") == 3
    assert contradictions([claim, Claim(Says.WAITING, "", 1.0, "us")]) == ["a slow stage, and nobody"]


def test_of_equal_stages_nothing_is_said() -> None:
    graph = pipeline(100, 100, 100)
    assert stage_claims(graph, hg.stragglers(graph)) == []
