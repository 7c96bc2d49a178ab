"""Whether what no cause names is told, with the region where it is."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.rest import REST, in_region
from tests.strategies import Json, load, op, step


def said(before: list[Json], after: list[Json]) -> list[str]:
    pair = JobPair(hg.diff(load(before), load(after)))
    return [REST.whole(claim) for claim in pair.claims(REST.when)]


def job(us: float, count: int = 8) -> list[Json]:
    """Return steps with one operator each, and nothing else that takes time."""
    found: list[Json] = []
    for number in range(count):
        begin = (us + 50) * number
        found += [step(number, begin, us + 40), op("aten::mm", begin + 5, us)]
    return found


def test_nothing_remains_where_one_kernel_explains_the_step() -> None:
    assert said(job(1_000), job(2_000)) == []


def test_work_in_no_region_is_in_none() -> None:
    assert in_region("aten::mm", hg.diff(load(job(1_000)), load(job(2_000)))) == ""
