"""Whether waiting without a straggler is told with what is known of it, and shown where it is longest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.analyses.stragglers import Stragglers
from htagraph.findings.finding import Claim
from htagraph.findings.results import Results
from htagraph.findings.waiting import WAITING, WaitingClaim, waits_evidence
from htagraph.queries.straggler import Difference
from tests.reach import DATA, SHARED, graph_of
from tests.strategies import load


@pytest.mark.parametrize(("excess_us", "said"), [(300.0, ""), (30_000.0, "1")])
def test_a_rank_that_is_slower_by_next_to_nothing_is_not_named_beside_the_waiting(excess_us: float, said: str) -> None:
    """0.3 ms in each of 10 steps are 0.7 % of 458 ms of waiting."""
    table = pd.DataFrame({
        "rank": [0, 1], "slow": [False, True], "slow_excess_us": [np.nan, excess_us], "slow_steps": [0, 10],
        "blamed_us": [458e3, 0.0], "share_percent": [100.0, 0.0], "step_excess_us": [-excess_us, excess_us],
        "late_count": [9, 1], "step_error_us": [1.0, 1.0], "cause": ["none", "none"],
    })  # fmt: skip
    slow = Stragglers(table, None, 458e3, steps=10)
    results = Results(load([]), slow=slow, busy=pd.DataFrame({"window_us": [2e6]}))
    (claim,) = WAITING.when(results)
    assert (claim.says, claim.about) == ("waiting", said)
    why = "rank 1, slower than its peers by 30.0 ms a step, explains" if said else "rank 0 comes last in 9 of 10 coll"
    assert isinstance(claim, WaitingClaim)
    assert claim.why.startswith(why)


@pytest.mark.parametrize(
    ("about", "more", "words"),
    [
        ("", {}, "; nobody is slow"),
        ("", {"charged": {2: 78.4}, "has_few_steps": True}, ", mostly for rank 2 (78 %); nobody is slow"),
        (
            "",
            {"charged": {3: 60.0}, "uneven": Difference("embedding_bag", 125.0, 72.0, 9, 9, 20.0)},
            " embedding_bag takes 125.0 µs on rank 3, against 72.0 µs at most on others.",
        ),
        ("", {"nobody_us": {"recordings begin late": 315.0}}, "; 63 % cannot be blamed: recordings begin late"),
        ("0", {"serves": 0, "does": "update"}, ": rank 0 does work that no other does (update), and they wait"),
    ],
)
def test_waiting_without_a_straggler_says_what_is_known(about: str, more: dict[str, Any], words: str) -> None:
    claim = WaitingClaim("waiting", about, 500.0, "us", why="nobody is slow", **more)
    assert words in WAITING.whole(claim)
    assert ("Record 5 steps" in WAITING.advice(claim)) == more.get("has_few_steps", False)


@pytest.mark.parametrize(
    ("charged", "said"),
    [
        ({1: 94.0}, "as transfers end later on rank 1: the network, not a slow rank."),
        ({}, "as a transfer ends later on"),
    ],
)
def test_ranks_that_are_late_by_their_transfers_are_not_to_be_looked_at(charged: dict[int, float], said: str) -> None:
    claim = WaitingClaim("waiting", "", 500.0, "us", why="rank 1 comes last", charged=charged, by_network=True)
    assert said in WAITING.why(claim)
    assert "mostly for" not in WAITING.why(claim)


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_a_full_link_of_a_real_job_is_the_reason_of_its_waits() -> None:
    """No rank of it is slow (its truth has no straggler): 400 KB on a shared link of 400 Mbit/s take 8 ms."""
    pair = SHARED.parent / "real_pairs" / "data_mechanisms" / "zero1_update_quarter" / "A1"
    (claim,) = WAITING.when(Results(graph_of(pair)))
    assert "the network, not a slow rank" in WAITING.why(claim)


def test_waiting_that_nobody_can_be_blamed_for_is_a_bar_of_its_own() -> None:
    graph = graph_of(DATA / "demo")
    slow = replace(hg.stragglers(graph), nobody_us={"recording": 5.0})
    bars = waits_evidence(Results(graph, slow=slow), Claim("waiting", "", 0.0, "us")).chart.bars
    assert (bars[-1].word, bars[-1].value) == ("nobody: recordings begin at different times", 5.0)


def test_each_rank_that_others_wait_for_has_the_place_of_the_longest_such_wait() -> None:
    graph = graph_of(DATA / "demo")
    parts = hg.collectives(graph)
    longest = parts.iloc[int(np.argmax(parts["wait_us"]))]
    evidence = waits_evidence(Results(graph), Claim("waiting", "", 0.0, "us"))
    places = [place for place in evidence.rows.places if place]
    assert len(places) == parts.loc[parts["wait_us"] > 0, "last_rank"].nunique()
    last = parts[(parts["collective"] == longest["collective"]) & (parts["rank"] == longest["last_rank"])]
    assert evidence.place is not None
    assert evidence.place.activity == int(last["activity"].iloc[0])
