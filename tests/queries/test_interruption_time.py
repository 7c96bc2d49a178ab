"""Whether streams that waited for interrupted calls go with the interruption, and no other pause of theirs does."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from tests.strategies import Json, kernel, launch, load, op, step

NAMES = 8
CALLS = 80
STOPS = {17: 9_000, 26: 5_000, 35: 7_000, 44: 4_000, 61: 8_000, 70: 6_000}
"""µs by which operators of rank 0 are stopped after their launch."""
LAUNCHES = {22: 3_000, 54: 4_000}
"""µs by which launch calls of rank 0 are stopped."""


def job(stops: dict[int, int], launches: dict[int, int], early: int = 0, late: int = 0) -> DependencyGraph:
    """Return a job whose host is stopped in the second of two steps of rank 0.

    Args:
        stops: µs by the number of the operator's call.
        launches: µs by the number of the operator's call, in the launch inside.
        early: µs by which a kernel starts before the stop in its launch ends.
        late: µs by which it starts later than it could.
    """
    events: dict[int, list[Json]] = {}
    for rank in (0, 1):
        now, free = 0, 0
        mine: list[Json] = []
        for number in (0, 1):
            begin = now
            for call in range(CALLS):
                here = rank == 0 and number == 1
                held = launches.get(call, 0) if here else 0
                lasts = 20 + held + (stops.get(call, 0) if here else 0)
                start = max(now + 12 + held - (early if held else 0) + (late if held else 0), free + 1)
                works = 30 if call + 1 in LAUNCHES else 2  # the stream is busy as the next call begins
                mine += [
                    op(f"aten::op{call % NAMES}", now, lasts), launch(now + 2, 5 + held, 1 + len(mine)),
                    kernel(f"k{call % NAMES}", start, works, 1 + len(mine)),
                ]  # fmt: skip
                now, free = now + lasts + 5, start + works
            mine.append(step(number, begin, now - begin))
        # the device has the last word, so that its pauses are on the path
        mine += [launch(now, 5, 9_001), kernel("last", max(now + 10, free + 1), 50_000, 9_001)]
        events[rank] = mine
    return load(events)


def gaps(graph: DependencyGraph) -> list[float]:
    """Return the pauses of streams that interruptions are, ms."""
    from htagraph.queries.interruption_time import interruption_time

    acts, found = graph.activities, interruption_time(graph).gaps
    return [round(graph.gap[vertex] / 1e6, 1) for vertex in found if acts.on_device[vertex >> 1]]


def test_a_stream_that_waited_for_an_interrupted_launch_does_not_wait_without_it() -> None:
    graph = job(STOPS, LAUNCHES)
    assert gaps(graph) == [3.0, 4.0]
    without = hg.what_if(graph).no_interruptions().run().makespan_ns
    assert without == pytest.approx(hg.what_if(job({}, {})).run().makespan_ns, abs=50_000)
    table = hg.opportunities(graph).set_index("name")["gain_us"]
    assert table["all host work"] >= table["interruptions of host code"]  # no part gains more than the whole
    assert hg.what_if(graph).infinite_host().run().makespan_ns <= without


@pytest.mark.parametrize(("early", "late"), [(1_000, 0), (0, 1_000)])
def test_a_kernel_that_does_not_start_as_the_interruption_ends_was_held_up_by_something_else(
    early: int, late: int
) -> None:
    graph = job(STOPS, LAUNCHES, early, late)
    assert len(hg.interruptions(graph)) == len(STOPS) + len(LAUNCHES)
    assert gaps(graph) == []
