"""Whether an empty job is named, and none where both recorded something."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.nothing_there import NOTHING_THERE
from htagraph.findings.differences.pair import JobPair
from tests.strategies import Json, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [NOTHING_THERE.whole(claim) for claim in pair.claims(NOTHING_THERE.when)]


def test_the_job_without_a_recording_is_named() -> None:
    some = [op("a", 0, 10)]
    assert said([], []) == ["Nothing was recorded: there is nothing to compare."]
    assert said([], some) == ["Nothing was recorded in the job before: there is nothing to compare with."]
    assert said(some, []) == ["Nothing was recorded in the job after: there is nothing to compare with."]
    assert said(some, some) == []
