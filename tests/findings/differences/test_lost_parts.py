"""Whether a part that a recording lacks is named with how to record it."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.lost_parts import LOST_PARTS
from htagraph.findings.differences.pair import JobPair
from tests.strategies import COMPUTE, Json, kernel, launch, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [LOST_PARTS.whole(claim) for claim in pair.claims(LOST_PARTS.when)]


def test_two_whole_recordings_lack_nothing() -> None:
    work = [launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), op("a", 0, 10)]
    assert said(work, work) == []


def test_each_part_is_a_claim_with_its_note() -> None:
    before = load([kernel(COMPUTE, 5, 100, 1)])
    pair = JobPair(hg.diff(before, before))
    claims = pair.claims(LOST_PARTS.when)
    assert [LOST_PARTS.whole(claim) for claim in claims] == pair.comparison.notes
