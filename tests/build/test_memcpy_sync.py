from __future__ import annotations

import pytest

from htagraph import EdgeKind
from htagraph.build.memcpy_sync import memcpy_sync
from tests.oracles import edges_by_name
from tests.strategies import Json, complete, load, runtime
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
