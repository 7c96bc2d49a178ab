"""Whether other devices and sizes are named, which change times by themselves."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.unlike_jobs import UNLIKE_JOBS
from tests.strategies import COMPUTE, Json, kernel, launch, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [UNLIKE_JOBS.whole(claim) for claim in pair.claims(UNLIKE_JOBS.when)]


def test_other_devices_are_named_and_like_jobs_are_not() -> None:
    work = [launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1)]
    (line,) = said(work, [op("a", 0, 10)])
    assert "ran on different devices" in line
    assert said(work, work) == []
