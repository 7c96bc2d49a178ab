"""Whether a job without steps is named beside one with steps."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.steps_of_one_job import STEPS_OF_ONE_JOB
from tests.strategies import Json, load, op, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [STEPS_OF_ONE_JOB.whole(claim) for claim in pair.claims(STEPS_OF_ONE_JOB.when)]


def test_the_job_without_steps_is_named() -> None:
    plain = [op("a", 0, 10)]
    (line,) = said(plain, [step(1, 0, 20), *plain])
    assert line.startswith("The job before has no steps, so whole jobs are compared; the job after has 1 step.")
    assert said(plain, plain) == []
