"""Whether the work that made the step longer is named, with its effect."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.causes import CAUSES
from htagraph.findings.differences.pair import JobPair
from tests.strategies import Json, load, op, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [CAUSES.whole(claim) for claim in pair.claims(CAUSES.when)]


def job(us: float, count: int = 8) -> list[Json]:
    """Return steps with one operator each, and nothing else that takes time."""
    found: list[Json] = []
    for number in range(count):
        begin = (us + 50) * number
        found += [step(number, begin, us + 40), op("aten::mm", begin + 5, us)]
    return found


def test_the_kernel_that_takes_longer_is_the_cause() -> None:
    (line,) = said(job(1_000), job(2_000))
    assert "aten::mm" in line
    assert "takes 1000.0 µs more own time per rank and step, which makes the step" in line


def test_a_job_beside_itself_has_no_cause() -> None:
    assert said(job(1_000), job(1_000)) == []
