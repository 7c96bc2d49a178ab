"""Whether the straggler is named with its cause, and can be tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import htagraph as hg
from htagraph.findings.change import usual_us
from htagraph.findings.phrases import spoken
from htagraph.findings.results import Results
from htagraph.findings.straggler import STRAGGLER, LateArrival, StragglerClaim
from htagraph.queries.silent_pause import SilentPause
from htagraph.simulate import Job, SlowRank, simulate
from tests.reach import DATA, graph_of


def test_the_straggler_is_named_with_its_cause() -> None:
    claim = StragglerClaim("straggler", "1", 90.0, "percent", total_us=500.0, cause="host", cause_name="aten::mm")
    assert STRAGGLER.whole(claim) == (
        "Rank 1 makes the others wait: 90 % of 500.0 µs in collectives (over all ranks); its host code takes longer, "
        "mainly aten::mm."
    )
    assert STRAGGLER.advice(claim) == "Compare rank 1 with its peers: the cores of its process, and what only it does."
    late = replace(claim, late=LateArrival("all_to_all", 17_100.0))
    assert STRAGGLER.advice(late).endswith("what only it does. Rank 1 enters all_to_all 17.1 ms late.")
    extra = replace(claim, cause="alone", cause_name="aten::mm in log")
    assert "it does more work than any other rank, mainly aten::mm in log." in STRAGGLER.whole(extra)
    assert STRAGGLER.advice(extra).startswith("Ask why rank 1 does aten::mm in log more often than others:")


def test_the_demos_straggler_can_be_as_fast_as_its_peers() -> None:
    results = Results(graph_of(DATA / "demo"))
    (claim,) = STRAGGLER.when(results)
    assert claim.about == "2"
    change = claim.change
    assert change is not None
    assert change.gain.value_us == usual_us(hg.what_if(results.graph).fix_straggler().run())
    assert change.options == ("--fix-straggler", "auto")


def test_a_rank_that_gains_next_to_nothing_if_it_were_faster_is_nothing_to_do_first(tmp_path: Path) -> None:
    slow_host = SlowRank(rank=5, what="host", factor=2.5)
    job = Job(ranks=8, steps=3, tp=2, pp=2, layers=6, slow_ranks=(slow_host,), seed=11)
    simulate(job).write(tmp_path)
    (claim,) = STRAGGLER.when(Results(graph_of(tmp_path)))
    assert claim.gain is not None
    assert 0 < claim.gain.value_us < 100  # µs of a job of 95 ms: the other ranks wait for its peers as well
    assert claim.change is None


def test_a_rank_that_pauses_is_to_be_asked_why_and_to_be_recorded_with_stacks() -> None:
    pause = SilentPause("exchange features", 20_030.0, 80.0)
    claim = StragglerClaim(
        "straggler", "1", 90.0, "percent", total_us=500.0, cause="pauses", cause_name="", pause=pause
    )
    assert STRAGGLER.advice(claim) == (
        "Find out why rank 1 pauses 20.0 ms per step in exchange features (its peers: 80.0 µs at most)."
    )
    assert spoken(STRAGGLER.why(claim)) == [
        "Rank 1 makes the others wait: nothing is recorded in its pause (a sleep, a lock, input or output?). "
        "Record it with with_stack=True."
    ]
    assert "its host pauses." in STRAGGLER.whole(claim)
    is_seen = replace(claim, has_stacks=True)
    assert spoken(STRAGGLER.why(is_seen)) == [
        "Rank 1 makes the others wait: nothing is recorded in its pause (a sleep, a lock, input or output?)."
    ]
