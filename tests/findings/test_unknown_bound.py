"""Whether a summary always says what bounds the job, or that the recording cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.findings.bound import BOUND
from htagraph.findings.results import Results
from htagraph.findings.unknown_bound import UNKNOWN_BOUND
from htagraph.findings.verdict import claims_of
from tests.reach import JOBS, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load, op

SAYS = {"bound", "unknown_bound", "incomplete", "no_device_work", "nothing_recorded"}
"""The findings that say what bounds a job, or why this cannot be said."""


@pytest.mark.slow
@pytest.mark.parametrize("path", JOBS, ids=label)
def test_each_recording_has_a_bound_or_the_reason_why_none_is_known(path: Path) -> None:
    results = Results(graph_of(path))
    said = {claim.says for claim in claims_of(results)}
    assert said & SAYS
    assert not {"bound", "unknown_bound"} <= said


def test_a_job_with_a_bound_is_not_unknown() -> None:
    results = Results(load([op("aten::mm", 0, 90), launch(5, 80, 1), kernel(COMPUTE, 10, 500, 1)]))
    assert BOUND.when(results)
    assert UNKNOWN_BOUND.when(results) == []


def test_an_unknown_cause_is_told_with_the_share_of_the_path() -> None:
    results = Results(load([op("aten::mm", 0, 90)]))
    results.__dict__["bound"] = results.bound._replace(cause="")  # as where the path passes by what devices do
    (claim,) = UNKNOWN_BOUND.when(results)
    assert claim.figure == 100
    assert UNKNOWN_BOUND.whole(claim).startswith(
        "What bounds the job cannot be said: its devices are at work nearly all the time, but the critical path is host"
    )
