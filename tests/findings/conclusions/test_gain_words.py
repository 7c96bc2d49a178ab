"""Whether gains are worded per step, with an interval where it is wide, and as "up to" where they may be nothing."""

from __future__ import annotations

import pytest

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.gain_words import is_sure, less_text, likely


def gain(interval: tuple[float, float] | None = None, steps: int = 1) -> Claim:
    return Claim(Says.GAIN, "", 300_000.0, "us", interval=interval, facts={"percent": 53.0, "steps": steps})


def test_a_gain_is_per_step_where_there_are_steps() -> None:
    assert less_text(gain()) == "the job would take 300.0 ms less (53 %)"
    assert less_text(gain(steps=3), "; try it") == "a step would take 100.0 ms less (53 %; try it)"


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
    assert likely(gain(interval, steps=2)) == shown
    assert is_sure(gain(interval)) == sure
