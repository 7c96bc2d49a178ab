"""Waits that time says nothing of, where one direction would leave a stream's work unused."""

from __future__ import annotations

from htagraph.graph.rules.event_wait import event_wait
from tests.strategies import COMMUNICATE, COPY, Json, kernel, launch, op, runtime
from tests.waiting import by_hand, named

SIDE = 20


def prefetching(
    *, synchronizes: bool = False, begins: int = 10, copy_us: int = 30, name: str = COPY, inside: bool = False
) -> list[Json]:
    """Return a loop that waits for the side stream, launches copies there for the next step, then computes.

    With `synchronizes`, the host waits for each copy; with `inside`, an operator launches it.
    """
    events: list[Json] = []
    for number in range(6):
        at, call = 200 * number, 10 * number + 1
        events += [
            runtime("cudaEventRecord", at, 1, call), runtime("cudaStreamWaitEvent", at + 2, 1, call + 1),
            launch(at + 5, 1, call + 2), kernel(name, at + begins, copy_us, call + 2, stream=SIDE),
            *([op("fork", at - 1, 9)] if inside else []),
            *([runtime("cudaStreamSynchronize", at + 8, copy_us + 5, call + 3)] if synchronizes else []),
            launch(at + 60, 1, call + 4), kernel(f"work{number}", at + 65, 100, call + 4),
        ]  # fmt: skip
    return events


def test_work_that_nobody_would_wait_for_is_awaited() -> None:
    job = by_hand(prefetching())
    pairs = named(job, event_wait(job))
    assert sorted(pairs) == [(COPY, f"work{number + 1}") for number in range(5)]


def test_a_stream_that_the_host_waits_for_needs_no_other_wait() -> None:
    job = by_hand(prefetching(synchronizes=True))
    assert not [source for source, _ in named(job, event_wait(job)) if source == COPY]


def test_work_that_is_not_over_in_time_is_not_awaited() -> None:
    job = by_hand(prefetching(begins=70, copy_us=198))
    assert not [source for source, _ in named(job, event_wait(job)) if source == COPY]


def test_forks_of_a_library_and_streams_that_communicate_stay_as_they_are() -> None:
    for events, work in ((prefetching(inside=True), COPY), (prefetching(name=COMMUNICATE), COMMUNICATE)):
        job = by_hand(events)
        assert not [source for source, _ in named(job, event_wait(job)) if source == work]
