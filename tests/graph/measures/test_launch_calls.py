"""Which launches a recording has no work for, and which of these a complete recording lacks, too."""

from __future__ import annotations

from htagraph.graph.measures.launch_calls import launch_calls, lost_places
from tests.strategies import COMPUTE, COPY, Json, kernel, launch, load, op, runtime


def _lost(events: list[Json]) -> list[bool]:
    return list(launch_calls(load(events)).is_lost)


def _served(number: int) -> list[Json]:
    return [launch(100 * number, 5, number), kernel(COMPUTE, 100 * number + 20, 30, number)]


def test_a_launch_has_the_work_of_its_correlation() -> None:
    calls = launch_calls(load([*_served(1), *_served(2), launch(150, 5, 9)]))
    assert calls.works.tolist() == [1, 1, 0]
    assert calls.is_lost.tolist() == [False, False, True]


def test_a_memset_may_be_of_no_bytes() -> None:
    assert _lost([*_served(1), runtime("cudaMemsetAsync", 150, 5, 9), *_served(2)]) == [False, False, False]


def test_work_that_was_queued_when_the_recording_ended_is_not_lost() -> None:
    busy = [launch(0, 5, 1), kernel(COMPUTE, 20, 500, 1), launch(30, 5, 2), launch(60, 5, 3)]
    assert _lost(busy) == [False, False, False]
    assert _lost([*busy, launch(600, 5, 4)]) == [False, False, False, True]


def test_calls_inside_a_capture_enqueue_nothing() -> None:
    begin = runtime("cudaStreamBeginCapture", 200, 5, 90)
    end = runtime("cudaStreamEndCapture", 260, 5, 91)
    assert _lost([*_served(1), begin, launch(220, 5, 9), end]) == [False]


def test_a_place_that_lost_all_its_work_counts_though_few_calls_are_there() -> None:
    events = [event for number in range(1, 400) for event in _served(number)]
    copies = [
        event
        for number in range(3)
        for event in (op("aten::copy_", 50_000 + 100 * number, 50), launch(50_010 + 100 * number, 5, 900 + number))
    ]
    graph = load([*events, *copies])
    calls = launch_calls(graph)
    every = slice(0, len(calls.activity))
    assert lost_places(graph, calls, every) == 3
    copied = [kernel(COPY, 50_030 + 100 * number, 5, 900 + number) for number in range(3)]
    served = load([*events, *copies, *copied])
    assert lost_places(served, launch_calls(served), every) == 0
