"""Whether odd steps, which make means per step uncertain, are told with their times."""

from __future__ import annotations

import pytest

from htagraph.findings.finding import Claim
from htagraph.findings.results import Results
from htagraph.findings.uneven_steps import UNEVEN_STEPS
from tests.strategies import load, op, step


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        (
            (400, 100, 100),
            ["Step 0 takes 400.0 µs, the others about 100.0 µs, and the usual step is without first steps."],
        ),
        (
            (400, 100, 100, 300, 100),
            ["Steps 0 and 3 take 300.0 µs to 400.0 µs, the others about 100.0 µs, so means per step fit neither."],
        ),
        (
            (*((100, 100, 300) * 3), 100),
            ["Steps 2, 5 and 8 take 300.0 µs, the others about 100.0 µs, so means per step fit neither."],
        ),
        ((100, 160, 400), ["Steps take 100.0 µs to 400.0 µs, so no figure per step is that of most of them."]),
        ((9000, 50), ["Steps take 50.0 µs to 9.00 ms, so no figure per step is that of most of them."]),
        ((100, 100), []),
    ],
)
def test_odd_steps_make_means_uncertain(lengths: tuple[int, ...], words: list[str]) -> None:
    steps = [step(number, sum(lengths[:number]), each) for number, each in enumerate(lengths)]
    claims = UNEVEN_STEPS.when(Results(load([*steps, op("a", 0, 1)])))
    assert [UNEVEN_STEPS.short(claim) for claim in claims] == words


def test_many_odd_steps_are_counted() -> None:
    facts = {
        "odd": (1, 2, 3, 4, 5),
        "low_us": 1000.0,
        "high_us": 2000.0,
        "usual_us": 100.0,
        "warm_up": False,
        "turn": 0,
    }
    text = UNEVEN_STEPS.whole(Claim("uneven_steps", "", 5, "count", facts=facts))
    assert text.startswith("5 steps take 1.00 ms to 2.00 ms, the others about 100.0 µs")
    assert text.endswith("so means per step fit neither.")
