from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import EdgeKind
from htagraph.graph.rules.memcpy_sync import memcpy_sync
from tests.oracles import edges_by_name
from tests.strategies import Json, complete, kernel, launch, load, op, runtime
from tests.waiting import MADE, by_hand, named, simulated, verdict

TO_HOST, TO_DEVICE = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"


def copy(name: str, start: float, duration: float, correlation: int, **args: int) -> Json:
    event = complete("gpu_memcpy", name, start, duration, 7, stream=7, device=0, correlation=correlation, **args)
    return event | {"pid": 0}


def queued(*, size: int, returns: float) -> list[Json]:
    """A copy from pageable memory from 5000 to 7000 µs, behind a kernel; its call is from 10 µs on."""
    events = [launch(0, 2, 1), kernel("k", 5, 4995, 1), runtime("cudaMemcpyAsync", 10, returns - 10, 2)]
    return [*events, copy(TO_DEVICE, 5000, 2000, 2, bytes=size)]


def test_a_call_waits_for_its_copy_to_pageable_memory() -> None:
    events = [runtime("cudaMemcpyAsync", 0, 30, 1), copy(TO_HOST, 10, 15, 1)]
    job = by_hand(events)
    assert named(job, memcpy_sync(job)) == [(TO_HOST, "cudaMemcpyAsync")]
    assert [(u, v) for u, v, _ in edges_by_name(load(events), EdgeKind.MEMCPY_SYNC)] == [
        (f"{TO_HOST}.end", "cudaMemcpyAsync.end")
    ]


def test_a_call_that_returned_before_its_copy_did_not_wait() -> None:
    job = by_hand([runtime("cudaMemcpyAsync", 0, 5, 1), copy(TO_DEVICE, 10, 15, 1)])
    assert len(memcpy_sync(job)) == 0


def test_a_copy_awaited_just_before_a_sync_that_has_nothing_left_to_wait_for() -> None:
    events = []
    for i in range(6):  # as `.to()`: the copy's call returns 5 µs after the copy, the sync 30 µs after it
        at, first = 2000 * i, 10 * i
        events += [runtime("cudaMemcpyAsync", at, 1505, first + 1), copy(TO_DEVICE, at + 1400, 100, first + 1)]
        events += [runtime("cudaStreamSynchronize", at + 1525, 5, first + 2)]
    job = by_hand(events)
    assert named(job, memcpy_sync(job)) == [(TO_DEVICE, "cudaMemcpyAsync")] * 6


def test_by_an_early_clock_of_the_device_no_copy_that_was_merely_staged_seems_awaited() -> None:
    early, events = 60, []
    for i in range(6):
        at, first = 1000 * i, 10 * i
        events += [runtime("cudaMemcpyAsync", at, 20, first + 1), copy(TO_DEVICE, at + 30 - early, 5, first + 1)]
        events += [launch(at + 40, 5, first + 2), kernel("k", at + 50 - early, 500, first + 2)]
        events += [runtime("cudaStreamSynchronize", at + 50, 510, first + 3)]
    job = by_hand(events)
    assert len(memcpy_sync(job)) == 0


def test_a_call_for_much_pageable_memory_waits_for_its_stream_and_returns_when_the_last_part_is_staged() -> None:
    graph = load([*queued(size=20_000_000, returns=6900), op("after", 6905, 5)])
    assert [lag for *_, lag in edges_by_name(graph, EdgeKind.MEMCPY_SYNC)] == [-100]
    assert hg.what_if(graph).scale(factor=0.5, kind="computation").run().saved_ns == 2_497_500
    assert hg.what_if(graph).scale(factor=0.5, kind="memory").run().saved_ns == 1_000_000
    assert not [issue for issue in graph.issues if issue.what == "edge_refused"]


@pytest.mark.parametrize("size", [8, 65_536])
def test_a_call_for_little_pageable_memory_returns_at_once(size: int) -> None:
    assert len(memcpy_sync(by_hand(queued(size=size, returns=40)))) == 0
    idle = [runtime("cudaMemcpyAsync", 10, 30, 2), copy(TO_DEVICE, 20, 3, 2, bytes=size)]
    assert len(memcpy_sync(by_hand(idle))) == 0, "it was over before the call returned, but the call did not wait"


def test_a_call_that_returned_before_its_large_copy_began_did_not_wait() -> None:
    assert len(memcpy_sync(by_hand(queued(size=20_000_000, returns=40)))) == 0


@pytest.mark.parametrize(("returns", "waits"), [(7010, True), (40, False)])
def test_copies_whose_names_do_not_tell_are_awaited_if_their_calls_are_seen_to_wait(
    *, returns: float, waits: bool
) -> None:
    events = []
    for i in range(4):
        at, first = 10_000 * i, 10 * i
        events += [launch(at, 2, first + 1), kernel("k", at + 5, 4995, first + 1)]
        events += [runtime("hipMemcpyAsync", at + 10, returns - 10, first + 2)]
        events += [copy("CopyDeviceToHost", at + 5000, 2000, first + 2)]
    assert len(memcpy_sync(by_hand(events))) == (4 if waits else 0)


@pytest.mark.parametrize(
    ("call", "waits"),
    [("cudaMemcpy", True), ("hipMemcpyWithStream", True), ("cudaMemcpyAsync", False), ("hipMemcpyAsync", False)],
)
def test_through_pinned_memory_only_synchronous_calls_wait(call: str, *, waits: bool) -> None:
    job = by_hand([runtime(call, 0, 30, 1), copy("Memcpy DtoH (Device -> Pinned)", 10, 15, 1)])
    assert len(memcpy_sync(job)) == waits


@pytest.mark.parametrize("name", MADE)
def test_simulated_copies_are_the_true_ones(name: str) -> None:
    job, truth = simulated(MADE[name])
    result = verdict(job, memcpy_sync(job), truth["memcpy_sync"])
    assert (result.wrong, result.lost) == (0, 0)
