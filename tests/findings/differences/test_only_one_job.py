"""Whether call paths of one job only are counted, with the longest."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.only_one_job import ONLY_ONE_JOB
from htagraph.findings.differences.pair import JobPair
from tests.strategies import Json, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [ONLY_ONE_JOB.whole(claim) for claim in pair.claims(ONLY_ONE_JOB.when)]


def test_the_longest_path_of_one_job_is_named() -> None:
    before = [op("a", 0, 10)]
    (line,) = said(before, [*before, op("b", 20, 50), op("c", 80, 5)])
    assert line == "Only the job after has 2 call paths, such as b (50.0 µs per rank and job)."
    assert said(before, before) == []
