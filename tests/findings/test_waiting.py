"""Whether waiting without a straggler is told with what is known of it, and shown where it is longest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.analyses.stragglers import Stragglers
from htagraph.findings.finding import Claim
from htagraph.findings.results import Results
from htagraph.findings.waiting import WAITING, waits_evidence
from tests.reach import DATA, graph_of
from tests.strategies import load


@pytest.mark.parametrize(("excess_us", "said"), [(300.0, ""), (30_000.0, "1")])
def test_a_rank_that_is_slower_by_next_to_nothing_is_not_named_beside_the_waiting(excess_us: float, said: str) -> None:
    """0.3 ms in each of 10 steps are 0.7 % of 458 ms of waiting."""
    table = pd.DataFrame({
        "rank": [0, 1], "slow": [False, True], "slow_excess_us": [np.nan, excess_us], "slow_steps": [0, 10],
        "blamed_us": [458e3, 0.0], "share_percent": [100.0, 0.0], "step_excess_us": [-excess_us, excess_us],
    })  # fmt: skip
    slow = Stragglers(table, None, 458e3, steps=10)
    results = Results(load([]), slow=slow, busy=pd.DataFrame({"window_us": [2e6]}))
    (claim,) = WAITING.when(results)
    assert (claim.says, claim.about, claim.facts["compared"]) == ("waiting", said, True)


@pytest.mark.parametrize(
    ("about", "facts", "words"),
    [
        ("", {}, "; no single rank is slower than its peers beyond chance"),
        ("3", {}, "; rank 3, slower than its peers, does not explain most of it"),
        ("", {"charged": {2: 78.4}, "few_steps": True}, ", mostly for rank 2 (78 %); 3 steps cannot show if it is"),
        ("", {"charged": {2: 78.4}}, ", mostly for rank 2 (78 %); no single rank is slower"),
        ("", {"charged": {0: 51.0, 6: 41.0}, "few_steps": True}, "3 steps cannot show if they are slow or late"),
        ("", {"compared": False}, "; their steps cannot be compared, so nothing shows which rank is slow"),
        ("0", {"serves": 0, "does": "update"}, ": rank 0 does work that no other does (update), and they wait"),
    ],
)  # fmt: skip
def test_waiting_without_a_straggler_says_what_is_known(about: str, facts: dict[str, Any], words: str) -> None:
    known = {"charged": {}, "few_steps": False, "steps": 3, "serves": None, "does": "", "compared": True} | facts
    claim = Claim("waiting", about, 500.0, "us", facts=known)
    assert words in WAITING.whole(claim)
    assert ("Record 5 steps" in WAITING.advice(claim)) == known["few_steps"]


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
