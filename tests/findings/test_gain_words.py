"""Whether gains are worded per step, with an interval where it is wide, and as "up to" where they may be nothing."""

from __future__ import annotations

import pytest

from htagraph.findings.gain_words import is_sure, less_text, likely, saves_text
from tests.findings.claims_by_hand import gain


def test_a_gain_is_per_step_where_there_are_steps() -> None:
    assert less_text(gain("", 3e5, 53.0)) == "the job would take 300.0 ms less (53 %)"
    assert less_text(gain("", 3e5, 53.0, steps=3), "; try it") == "a step would take 100.0 ms less (53 %; try it)"


@pytest.mark.parametrize(
    ("interval", "shown", "sure"),
    [
        (None, "", True),
        ((280_000.0, 320_000.0), "", True),
        ((100_000.0, 320_000.0), "; likely 50.0 ms to 160.0 ms", True),
        ((-10_000.0, 320_000.0), "; likely 0 to 160.0 ms", False),
    ],
)
def test_an_interval_is_said_where_it_is_wide(interval: tuple[float, float] | None, shown: str, *, sure: bool) -> None:
    claim = gain("", 3e5, 53.0, steps=2, interval=interval)
    assert likely(claim) == shown
    assert is_sure(claim) == sure
    assert saves_text(claim) == f"saves {'' if sure else 'up to '}150.0 ms per step"
