"""Whether the profiler's time is named where two jobs on hosts have unlike numbers of events."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.differences.recording_cost import RECORDING_COST
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, step


def job(events_per_step: int, lasts: float, *, device: bool = False) -> list[Json]:
    """Return eight steps of a number of operators, each so long, µs, one after the other."""
    length = events_per_step * lasts + 10
    found: list[Json] = []
    for number in range(8):
        begin = number * length
        found.append(step(number, begin, length))
        found += [op("aten::add", begin + lasts * at, lasts) for at in range(events_per_step)]
        if device:
            found += [launch(begin, 1, number + 1), kernel(COMPUTE, begin + 2, length - 5, number + 1)]
    return found


@pytest.mark.parametrize(
    ("before", "after", "device", "words"),
    [
        ((100, 4.0), (20, 10.0), False, "the job before has 80 more events of host code per step, and"),
        ((100, 4.0), (20, 10.0), False, "80.0 µs in all: without a profiler, the difference is smaller."),
        ((20, 10.0), (100, 4.0), False, "the job after has 80 more events"),
        ((20, 30.0), (100, 4.0), False, "without a profiler, the difference is larger."),
        ((100, 4.0), (95, 2.0), False, ""),  # 5 of 205 µs
        ((100, 4.0), (20, 10.0), True, ""),  # devices pace the steps
    ],
)
def test_a_difference_names_what_recording_takes_of_it(
    before: tuple[int, float], after: tuple[int, float], *, device: bool, words: str
) -> None:
    pair = JobPair(hg.diff(load(job(*before, device=device)), load(job(*after, device=device))))
    said = "".join(map(RECORDING_COST.whole, pair.claims(RECORDING_COST.when)))
    assert words in said
    assert bool(words) == bool(said)
