"""Whether claims that contradict themselves or each other are found."""

from __future__ import annotations

from typing import Any

import pytest

from htagraph.findings.claim import Claim, contradictions


def bound(**facts: Any) -> Claim:
    return Claim("bound", "host", 70.0, "percent", facts={"unexplained_percent": 8.0, **facts})


def gain(figure: float = 10.0, interval: tuple[float, float] | None = (8.0, 12.0), **facts: Any) -> Claim:
    return Claim("gain", "aten::mm", figure, "us", interval=interval, facts={"makespan_us": 100.0, **facts})


def test_claims_that_agree_contradict_nothing() -> None:
    unexplained = Claim("unexplained", "path", 8.0, "percent")
    assert contradictions([bound(), gain(half_us=5.0), unexplained]) == []
    assert contradictions([]) == []


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([Claim("device_idle", "other", 101.0, "percent")], "no share"),
        ([Claim("device_idle", "other", -1.0, "percent")], "no share"),
        ([bound(), bound()], "bound by host and by host"),
        ([gain(20.0)], "not between"),
        ([gain(120.0, None)], "more than the job takes"),
        ([gain(half_us=11.0)], "half of it gains more"),
        ([bound(), Claim("unexplained", "path", 67.0, "percent")], "unexplained 67 % and 8 %"),
        ([bound(by_workers=True), gain()], "the loader's workers set the pace"),
        ([Claim("straggler", "1", 90.0, "percent"), Claim("waiting", "", 9.0, "us")], "a straggler, and none"),
        ([Claim("straggler", rank, 50.0, "percent") for rank in "12"], "several stragglers"),
    ],
)
def test_a_contradiction_is_named(claims: list[Claim], words: str) -> None:
    assert any(words in problem for problem in contradictions(claims))


def test_a_faster_loader_is_no_contradiction_to_being_bound_by_it() -> None:
    assert contradictions([bound(by_workers=True), gain(loader=True)]) == []
