"""Whether a region that runs more often is named with its calls."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.regions import REGIONS
from tests.strategies import Json, annotation, load, op, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [REGIONS.whole(claim) for claim in pair.claims(REGIONS.when)]


def job(calls: int) -> list[Json]:
    """Return steps that call a region several times, and do nothing else."""
    found: list[Json] = []
    for number in range(8):
        begin = 1_000 * calls * number
        found.append(step(number, begin, 1_000 * calls - 5))
        for call in range(calls):
            found += [annotation("part", begin + 1_000 * call, 900), op("a", begin + 1_000 * call + 5, 800)]
    return found


def test_a_region_that_runs_more_often_is_named() -> None:
    (line,) = said(job(1), job(2))
    assert line == "Per rank and step, part takes 900.0 µs more with all inside (2 calls instead of 1)."
    assert said(job(1), job(1)) == []
