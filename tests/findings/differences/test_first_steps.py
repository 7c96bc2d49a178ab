"""Whether steps that are left out as warm-up are counted."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.first_steps import FIRST_STEPS, FirstStepsClaim
from htagraph.findings.differences.pair import JobPair
from tests.strategies import COMPUTE, Json, kernel, launch, load, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [FIRST_STEPS.whole(claim) for claim in pair.claims(FIRST_STEPS.when)]


def job(kernel_us: float, count: int = 8) -> list[Json]:
    """Return steps with one kernel each, and nothing else that takes time."""
    found: list[Json] = []
    for number in range(count):
        begin = (kernel_us + 50) * number
        found += [step(number, begin, kernel_us + 40), launch(begin + 1, 2, number + 1)]
        found.append(kernel(COMPUTE, begin + 5, kernel_us, number + 1))
    return found


def test_nothing_is_left_out_of_even_steps() -> None:
    assert said(job(100), job(200)) == []


def test_one_step_is_told_without_its_number() -> None:
    claim = FirstStepsClaim("first_steps", "after", 1, "count", side="after")
    assert FIRST_STEPS.whole(claim).startswith("Not compared: the first step of the job after,")
