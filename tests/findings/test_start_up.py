"""Whether first calls on the critical path are told, and nobody is advised to halve them."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.finding import Claim
from htagraph.findings.start_up import START_UP
from htagraph.findings.verdict import first_step, trial_of
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime

MS = 1000


def starting() -> list[Json]:
    """Return a job of which half is the first call of a function."""
    events = [op("aten::empty", 0, 300 * MS), runtime("cudaFree", 0, 250 * MS), runtime("cudaFree", 251 * MS, 50)]
    return [*events, op("aten::mm", 300 * MS, 200 * MS), launch(499 * MS, 20, 5), kernel(COMPUTE, 500 * MS, 10, 5)]


def test_start_up_is_said_and_nobody_is_told_to_halve_it() -> None:
    claims = hg.summarize(load(starting())).claims
    (claim,) = [each for each in claims if each.says == "start_up"]
    assert claim.about == "cudaFree"
    assert START_UP.whole(claim) == (
        "Start-up is 50 % of the critical path: first calls, as when contexts are made and code is loaded, of cudaFree "
        "(250.0 ms)."
    )
    gains = [each for each in claims if each.says == "gain"]
    assert [each.about for each in gains if "Free" in each.about] == []
    best = trial_of(claims)
    assert best is not None
    assert "cudaFree" not in best.command(["x"])
    assert first_step(claims) == "Record after a warm-up, to see the steady job."


def test_more_first_calls_are_counted() -> None:
    calls = (("a", 3e6), ("b", 2e6), ("c", 1e6), ("d", 1e6))
    text = START_UP.whole(Claim("start_up", "a", 99.8, "percent", facts={"calls": calls}))
    assert text.startswith("Start-up is over 99 % of the critical path")
    assert "of a (3.00 s), b (2.00 s) and 2 more." in text
