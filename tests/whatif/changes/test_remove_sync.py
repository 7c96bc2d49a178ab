from __future__ import annotations

import pytest

import htagraph as hg
from tests.strategies import COMPUTE, kernel, launch, load, op, runtime
from tests.whatif.changes.simulated import recorded, small


def test_the_call_costs_what_it_costs_when_nothing_is_pending() -> None:
    events = [runtime("cudaDeviceSynchronize", 0, 2), launch(5, 2, 1), kernel(COMPUTE, 10, 50, 1)]
    graph = load([*events, runtime("cudaDeviceSynchronize", 8, 54), op("after", 62, 5)])
    outcome = hg.what_if(graph).remove_sync().run()
    sync = graph.select(kind="sync").activities[1]
    assert outcome.time[2 * sync + 1] - outcome.time[2 * sync] == 2_000
    assert outcome.makespan_ns == 60_000


def test_only_the_calls_asked_for() -> None:
    graph, _ = recorded(small("gpu_bound"))
    one = hg.what_if(graph).remove_sync(rank=0, step=graph.steps[0]).run()
    assert one.saved_ns <= hg.what_if(graph).remove_sync().run().saved_ns


def test_a_copy_from_pageable_memory_blocks_by_itself_and_one_to_the_host_may_be_read_later() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 1000, 1)]
    for direction, saves in (("HtoD (Pageable -> Device)", 0), ("DtoH (Device -> Pageable)", 900)):
        copied = [*events, op("aten::to", 10, 3100), runtime("cudaMemcpyAsync", 12, 3003, 2)]
        copied += [kernel(f"Memcpy {direction}", 1010, 2000, 2) | {"cat": "gpu_memcpy"}]
        graph = load([*copied, runtime("cudaStreamSynchronize", 3020, 3), op("after", 3200, 2000)])
        assert hg.what_if(graph).remove_sync(op="aten::to").run().saved_ns >= 1000 * saves
        assert bool(saves) == (hg.what_if(graph).remove_sync(op="aten::to").run().saved_ns > 10_000)
    with pytest.raises(hg.SelectionError, match="block by themselves"):
        hg.what_if(load([*copied[:-1], copied[-1] | {"name": "Memcpy HtoD (Pageable -> Device)"}])).remove_sync().run()
