"""Whether two programs are told from two recordings of one."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.other_work import OTHER_WORK
from htagraph.findings.differences.pair import JobPair
from tests.strategies import Json, load, op


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [OTHER_WORK.whole(claim) for claim in pair.claims(OTHER_WORK.when)]


def test_jobs_without_a_common_name_do_other_work() -> None:
    assert len(said([op("a", 0, 10)], [op("b", 0, 10)])) == 1
    assert said([op("a", 0, 10)], [op("a", 0, 20)]) == []
