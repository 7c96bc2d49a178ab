from __future__ import annotations

import pytest

from htagraph import EdgeKind
from htagraph.graph.rules.memcpy_sync import memcpy_sync
from tests.oracles import edges_by_name
from tests.strategies import Json, complete, kernel, launch, load, runtime
from tests.waiting import MADE, by_hand, named, simulated, verdict

TO_HOST, TO_DEVICE = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"


def copy(name: str, start: float, duration: float, correlation: int) -> Json:
    event = complete("gpu_memcpy", name, start, duration, 7, stream=7, device=0, correlation=correlation)
    return event | {"pid": 0}


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
