"""Whether changes of one origin are one cause, and causes add up."""

from __future__ import annotations

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.findings.differences.origins import Origin, named_causes
from htagraph.findings.differences.pair import JobPair
from tests.strategies import Json, load, op, step


def job(us: float, count: int = 8) -> list[Json]:
    """Return steps with one operator each, and nothing else that takes time."""
    found: list[Json] = []
    for number in range(count):
        begin = (us + 50) * number
        found += [step(number, begin, us + 40), op("aten::mm", begin + 5, us)]
    return found


def test_one_kernel_is_one_cause_with_its_whole_effect() -> None:
    pair = JobPair(hg.diff(load(job(1_000)), load(job(2_000))))
    (cause,) = named_causes(pair)
    assert cause.origin == Origin("work", ActivityKind.OP.label, "aten::mm")
    assert cause.alone_us == cause.effect_us
    assert named_causes(JobPair(hg.diff(load(job(1_000)), load(job(1_000))))) == []
