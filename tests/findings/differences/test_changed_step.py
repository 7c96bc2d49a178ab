"""Whether the change of the step comes with both times and its sign."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.changed_step import CHANGED_STEP
from htagraph.findings.differences.pair import JobPair
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [CHANGED_STEP.whole(claim) for claim in pair.claims(CHANGED_STEP.when)]


def job(kernel_us: float, count: int = 8) -> list[Json]:
    """Return steps with one kernel each, and nothing else that takes time."""
    found: list[Json] = []
    for number in range(count):
        begin = (kernel_us + 50) * number
        found += [step(number, begin, kernel_us + 40), launch(begin + 1, 2, number + 1)]
        found.append(kernel(COMPUTE, begin + 5, kernel_us, number + 1))
    return found


def test_the_change_has_its_sign_and_both_times() -> None:
    (slower,) = said(job(100), job(200))
    (faster,) = said(job(200), job(100))
    assert " longer (" in slower
    assert " shorter (" in faster
    assert "instead of" in slower


def test_a_job_is_as_long_as_itself() -> None:
    (line,) = said(job(100), job(100))
    assert line.startswith("No difference that these recordings show")
    assert said([], []) == []


def test_the_first_sentence_names_the_cause_of_the_change() -> None:
    before: list[Json] = []
    after: list[Json] = []
    for number in range(8):
        before += [step(number, 1_050 * number, 1_040), op("aten::mm", 1_050 * number + 5, 1_000)]
        after += [step(number, 2_050 * number, 2_040), op("aten::mm", 2_050 * number + 5, 2_000)]
    (slower,) = said(before, after)
    assert slower.endswith("all of that because aten::mm takes 1000.0 µs more.")
