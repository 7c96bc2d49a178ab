"""Whether two jobs are compared once, and work that changed says what it is."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.finding import Claim
from tests.strategies import load, op


def test_claims_are_made_once() -> None:
    graph = load([op("a", 0, 10)])
    pair = JobPair(hg.diff(graph, graph))
    asked = []
    assert pair.claims(lambda _: []) == []

    def when(_: JobPair) -> list[Claim]:
        asked.append(1)
        return []

    assert [pair.claims(when), pair.claims(when)] == [[], []]
    assert len(asked) == 1


def test_work_of_one_job_says_which() -> None:
    pair = JobPair(hg.diff(load([op("a", 0, 10)]), load([op("a", 0, 10), op("b", 20, 50)])))
    assert {work.name: work.side for work in pair.work if work.name in ("a", "b")}["b"] == "new"
    assert not pair.is_other_work
