"""Whether shifts of time between categories of the path are told, unless a cause says it."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.categories import CATEGORIES_OF_PATH
from htagraph.findings.differences.pair import JobPair
from tests.strategies import COMPUTE, Json, kernel, launch, load, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [CATEGORIES_OF_PATH.whole(claim) for claim in pair.claims(CATEGORIES_OF_PATH.when)]


def job(kernel_us: float, count: int = 8) -> list[Json]:
    """Return steps with one kernel each, and nothing else that takes time."""
    found: list[Json] = []
    for number in range(count):
        begin = (kernel_us + 50) * number
        found += [step(number, begin, kernel_us + 40), launch(begin + 1, 2, number + 1)]
        found.append(kernel(COMPUTE, begin + 5, kernel_us, number + 1))
    return found


def test_one_shift_that_a_cause_explains_is_not_told_again() -> None:
    assert said(job(1_000), job(2_000)) == []
    assert said(job(1_000), job(1_000)) == []
