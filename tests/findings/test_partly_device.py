"""Whether it is said that a device does nothing at the begin or the end of a recording."""

from __future__ import annotations

import pytest

from htagraph.findings.partly_device import PARTLY_DEVICE
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, kernel, launch, load, op, step


@pytest.mark.parametrize(
    ("host_us", "words"),
    [(1000, "The device does nothing for the last 690.0 µs of 995.0 µs, which other idle times leave out."), (310, "")],
)
def test_it_is_said_where_a_fifth_of_the_recording_is_without_device_work(host_us: int, words: str) -> None:
    """The recording begins at 0, its first step at 5, and the device works from 5 to 310 µs."""
    events = [op("a", 0, host_us), step(0, 5, 200), launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), launch(202, 3, 2)]
    results = Results(load([*events, kernel(COMPUTE, 210, 100, 2)]))
    claims = PARTLY_DEVICE.when(results)
    assert [PARTLY_DEVICE.short(claim) for claim in claims] == ([words] if words else [])
    for claim in claims:
        (_, parts) = PARTLY_DEVICE.evidence(results, claim).chart.stacks[0]
        assert [part.value for part in parts] == [0.0, 305.0, 690.0]


def test_the_rank_whose_device_begins_last_is_named() -> None:
    job = {
        rank: [op("a", 0, 400), launch(begin, 2, 1), kernel(COMPUTE, begin + 5, 395 - begin, 1)]
        for rank, begin in enumerate((5, 215))
    }
    (claim,) = PARTLY_DEVICE.when(Results(load(job)))
    text = "The device of rank 1 does nothing for the first 220.0 µs of 400.0 µs"
    assert PARTLY_DEVICE.short(claim).startswith(text)
