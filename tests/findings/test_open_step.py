"""Whether a step that was open when the profiler stopped is told, and what to record instead."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.open_step import OPEN_STEP, OpenStepClaim
from htagraph.findings.results import Results
from tests.damage import END
from tests.strategies import COMPUTE, Json, kernel, launch, load, step


def job(*steps: Json) -> hg.DependencyGraph:
    """Return a job whose profiler stops at 9 ms."""
    works = [each for at in (100, 4_000, 8_000) for each in (launch(at, 5, at), kernel(COMPUTE, at + 10, 900, at))]
    return load([*steps, *works, END])


def test_the_only_step_that_was_not_recorded_whole_is_told_first() -> None:
    graph = job(step(1, 0, 13_000_000))
    (claim,) = OPEN_STEP.when(Results(graph))
    assert isinstance(claim, OpenStepClaim)
    assert claim.whole == 0
    assert OPEN_STEP.whole(claim) == (
        "The profiler stopped within step 1, 9.00 ms after its begin: no step was recorded whole."
    )
    assert OPEN_STEP.why(claim) == "The profiler stopped within step 1: no step was recorded whole."
    first = hg.summarize(graph).changes.first
    assert first is not None
    assert first.text.startswith("Record whole steps: call prof.step() after each step")


def test_beside_whole_steps_it_is_told_and_nothing_has_to_be_recorded_again() -> None:
    (claim,) = OPEN_STEP.when(Results(job(step(1, 0, 3_900), step(2, 3_900, 4_000), step(3, 7_900, 13_000_000))))
    assert isinstance(claim, OpenStepClaim)
    assert claim.whole == 2
    assert OPEN_STEP.whole(claim) == "The profiler stopped within step 3, 1.10 ms after its begin."
    assert not OPEN_STEP.why(claim)
    assert not OPEN_STEP.advice(claim)
    (claim,) = OPEN_STEP.when(Results(job(step(1, 0, 3_900), step(2, 3_900, 13_000_000))))
    assert OPEN_STEP.whole(claim).endswith("after its begin: only the 1 step before it was recorded whole.")


def test_steps_that_end_within_the_recording_are_whole() -> None:
    assert OPEN_STEP.when(Results(job(step(1, 0, 8_990)))) == []
    assert OPEN_STEP.when(Results(load([step(1, 0, 13_000_000), launch(5, 5, 1)]))) == [], "no end is known"
