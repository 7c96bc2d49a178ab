"""Whether an empty job is said to be empty, and no other."""

from __future__ import annotations

from htagraph.findings.nothing_recorded import NOTHING_RECORDED
from htagraph.findings.results import Results
from tests.strategies import load, op


def test_only_a_job_without_any_time_has_nothing() -> None:
    (claim,) = NOTHING_RECORDED.when(Results(load([])))
    assert NOTHING_RECORDED.whole(claim).endswith("Was the profiler active during a step?")
    assert NOTHING_RECORDED.when(Results(load([op("a", 0, 5)]))) == []
