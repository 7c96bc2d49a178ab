from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import EdgeKind, GapKind
from tests.strategies import COMPUTE, Job, Json, jobs, kernel, launch, load, op, runtime

SYNC = "cudaStreamSynchronize"


def lag_of(graph: hg.DependencyGraph, kind: EdgeKind, target: int) -> list[int]:
    edges = graph.edges
    return edges.lag[(edges.kind == kind) & (edges.target == target)].tolist()


def waiting(sync_end: float, *more: Json) -> hg.DependencyGraph:
    """A kernel from 5 to 105 µs, launched at 0, and a call that blocks from 10 µs on."""
    return load([launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), runtime(SYNC, 10, sync_end - 10, 9), *more])


def test_a_call_that_waited_keeps_only_its_own_cost() -> None:
    graph = waiting(109)
    assert lag_of(graph, EdgeKind.BODY, 2 * 2 + 1) == [3000], "nothing tells what it costs: a small constant"
    assert lag_of(graph, EdgeKind.HOST_SYNC, 2 * 2 + 1) == [4000], "the way back to the host is the edge's"


def test_its_own_cost_is_that_of_calls_that_found_nothing_to_wait_for() -> None:
    graph = waiting(109, runtime(SYNC, 200, 7, 10), runtime(SYNC, 220, 9, 11), runtime(SYNC, 240, 8, 12))
    assert lag_of(graph, EdgeKind.BODY, 2 * 2 + 1) == [8000]


def test_a_shorter_kernel_ends_the_wait_earlier() -> None:
    graph = waiting(109, op("after", 112, 5))
    outcome = hg.what_if(graph).scale(factor=0.5, kind="computation").run()
    assert outcome.saved_ns == 50_000


def test_a_call_that_returned_long_after_what_it_is_thought_to_wait_for_was_busy_itself() -> None:
    graph = waiting(900)
    assert lag_of(graph, EdgeKind.BODY, 2 * 2 + 1) == [890_000]


def test_a_short_pause_is_put_on_the_edge_that_was_binding_and_on_no_other() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), launch(20, 2, 2), kernel(COMPUTE, 108, 10, 2)]
    graph = load(events)
    assert lag_of(graph, EdgeKind.STREAM, 2 * 3) == [3000]
    assert lag_of(graph, EdgeKind.LAUNCH, 2 * 3) == [5000]
    assert not graph.gap[2 * 3]


def test_what_no_pause_of_the_device_explains_stays_a_gap() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 100, 1), launch(20, 2, 2), kernel(COMPUTE, 505, 10, 2)]
    graph = load(events)
    assert graph.gap[2 * 3] == 399_000
    assert GapKind(graph.gap_kind[2 * 3]) == GapKind.STREAM_IDLE


def test_a_launch_call_that_takes_long_may_start_its_work_late() -> None:
    events = [launch(100 * i, 2, i + 1) for i in range(5)] + [kernel(COMPUTE, 100 * i + 5, 10, i + 1) for i in range(5)]
    events += [launch(1000, 3000, 6), kernel(COMPUTE, 4006, 10, 6)]  # loading a module, for example
    graph = load(events)
    assert not graph.gap[2 * 11]
    assert lag_of(graph, EdgeKind.LAUNCH, 2 * 11) == [3_006_000]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_no_lag_is_larger_than_what_was_recorded(job: Job) -> None:
    graph = load(job)
    observed = graph.time[graph.edges.target] - graph.time[graph.edges.source]
    assert bool(np.all(graph.edges.lag <= observed))
    assert bool(np.all(graph.gap >= 0))
