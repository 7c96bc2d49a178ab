"""Whether interruptions are worded as they lie in time, and only as far as is known."""

from __future__ import annotations

import pytest

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.interruption_words import interrupted_finding, interrupted_sentence

FACTS = {
    "counts": {0: 18, 1: 40, 2: 20}, "shares": {0: 68.2, 1: 73.1, 2: 70.0}, "places": 41, "least_us": 1_010.0,
    "most_us": 44_000.0, "going": 2, "together_percent": 81.0, "chance_percent": 30.0,
}  # fmt: skip


def claim(**more: object) -> Claim:
    return Claim(Says.INTERRUPTED, "", 346_300.0, "us", facts=FACTS | more)


def test_how_often_how_long_and_where() -> None:
    said = interrupted_finding(claim(pattern=""), "the job is faster")
    assert said == (
        "Host code is interrupted 18 to 40 times on each rank, for 68 to 73 % of its time, in 41 different places "
        "(operators, functions, calls, or between them). Something outside of these stops it. Without that, the job is "
        "faster."
    )


@pytest.mark.parametrize(
    ("pattern", "short", "long", "check"),
    [
        (
            "in turn",
            "only 2 of 3 ranks runs at a time, as if all shared 2 cores",
            "exactly 2 of 3 ranks runs",
            "taskset",
        ),
        (
            "together",
            "on all ranks at the same moments",
            "all are (expected by chance: 30 %)",
            "stops all processes at once",
        ),
        ("", "Something outside of these stops it.", "something outside of these stops it", "garbage collector"),
    ],
)
def test_only_what_the_trace_shows_is_said_of_the_cause(pattern: str, short: str, long: str, check: str) -> None:
    assert short in interrupted_finding(claim(pattern=pattern), "")
    sentence = interrupted_sentence(claim(pattern=pattern), "")
    assert long in sentence
    assert check in sentence
    assert ("gc.freeze" in sentence) == (pattern == "")


def test_ranks_without_any_are_counted() -> None:
    some = claim(pattern="", counts={0: 9, 1: 0}, shares={0: 20.0, 1: 0.0})
    assert interrupted_finding(some, "").startswith("Host code is interrupted 9 times on 1 of 2 ranks, for 20 % of its")
