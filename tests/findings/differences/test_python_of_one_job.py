"""Whether Python functions of one job only are named."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.python_of_one_job import PYTHON_OF_ONE_JOB
from tests.strategies import Json, complete, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [PYTHON_OF_ONE_JOB.whole(claim) for claim in pair.claims(PYTHON_OF_ONE_JOB.when)]


def test_the_job_with_python_is_named() -> None:
    plain = [op("a", 0, 10)]
    python = [*plain, complete("python_function", "f.py(1): f", 0, 20, **{"Python id": 1})]
    (line,) = said(plain, python)
    assert "in the job after only" in line
    assert said(python, python) == []
