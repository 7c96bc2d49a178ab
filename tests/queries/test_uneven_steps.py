"""Which steps are unlike the others."""

from __future__ import annotations

import pytest

from htagraph.queries.uneven_steps import UnevenSteps, uneven_steps
from tests.strategies import COMPUTE, kernel, launch, load, op, step


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([100, 110, 90, 150], None),
        ([400, 100, 110], UnevenSteps((0,), (400_000, 400_000), 105_000)),
        ([100, 110, 90, 30], UnevenSteps((3,), (30_000, 30_000), 100_000)),
        ([9000, 50], UnevenSteps((), (50_000, 9_000_000), 0)),
        ([10, 100, 1000, 10_000], UnevenSteps((), (10_000, 10_000_000), 0)),
        ([100], None),
        ([], None),
    ],
    ids=str,
)
def test_steps_beyond_twice_the_others_are_odd(lengths: list[int], expected: UnevenSteps | None) -> None:
    events = [op("aten::mm", 0, 1)]
    for number, length in enumerate(lengths):
        events.append(step(number, sum(lengths[:number]), length))
    assert uneven_steps(load(events)) == expected


def test_steps_that_are_enqueued_ahead_are_as_long_as_their_device_takes() -> None:
    """The host is done after 30 µs; the device takes 100 for each step, which lasts 110, 200 and 290 from its start."""
    events = []
    for number in range(3):
        events += [step(number, 10 * number, 10), launch(10 * number, 1, number + 1)]
        events.append(kernel(COMPUTE, 10 + 100 * number, 100, number + 1))
    assert uneven_steps(load(events)) is None
