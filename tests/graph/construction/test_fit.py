"""Nominal edges are fitted to the recorded times: see also the tests of each rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import EdgeKind, GapKind
from htagraph.queries.path_segments import bound_of
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, MAIN, OTHER, Job, Json, arrow, jobs, kernel, launch, load, op, runtime


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_no_lag_is_longer_than_observed(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    observed = graph.time[graph.edges.target] - graph.time[graph.edges.source]
    assert (graph.edges.lag <= observed).all()


def test_work_before_its_launch_is_reported_for_each_rank_by_the_worst() -> None:
    early = [launch(10, 1, 1), kernel(COMPUTE, 8, 1, 1), launch(20, 1, 2), kernel(COMPUTE, 15, 1, 2)]
    graph = load({0: early[:2], 1: [launch(0, 1, 1), kernel(COMPUTE, 3, 1, 1)], 2: early})
    found = [issue for issue in graph.issues if issue.what == "negative_launch_latency"]
    assert [(issue.rank, issue.count) for issue in found] == [(2, 2), (0, 1)], "the worst first"
    assert ["by up to 5.0 µs" in found[0].detail, "by up to 2.0 µs" in found[1].detail] == [True, True]


def crossed() -> list[Json]:
    """Return two pairs of operators, each of which seems to need what the other thread does later."""
    one, two = op("one", 0, 1, MAIN), op("two", 1, 1, MAIN)
    three, four = op("three", 0, 1, OTHER), op("four", 1, 1, OTHER)
    return [one, two, three, four, *arrow(1, two, three), *arrow(2, four, one)]


def test_dependencies_that_lead_in_a_circle_are_dropped_and_reported() -> None:
    graph = load(crossed())
    graph.check()
    assert edges_by_name(graph, EdgeKind.AUTOGRAD) == []
    assert [(issue.what, issue.count) for issue in graph.issues if issue.what == "cycle_broken"] == [
        ("cycle_broken", 2)
    ]


def test_what_lies_on_no_circle_stays() -> None:
    forward, backward = op("forward", 10, 1, MAIN), op("backward", 12, 1, OTHER)
    graph = load([*crossed(), forward, backward, *arrow(3, forward, backward)])
    assert edges_by_name(graph, EdgeKind.AUTOGRAD) == [("forward.end", "backward.start", 0)]


def test_an_edge_back_in_time_does_not_call_for_a_search_of_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("htagraph.graph.construction.fit._on_circles")
    assert lags(launch(10, 4, 1), kernel(COMPUTE, 8, 1, 1)) == [-2]  # the kernel began before its launch
    with pytest.raises(NameError, match="_on_circles"):
        load(crossed())


def lags(*events: Json) -> list[int]:
    return [lag for *_, lag in edges_by_name(load(list(events)), EdgeKind.LAUNCH)]


def test_what_waited_for_its_stream_has_the_latency_of_launches_that_did_not() -> None:
    works = [kernel(COMPUTE, 6, 94, 1), kernel(COMPUTE, 101, 9, 2), kernel(COMPUTE, 207, 9, 3)]
    assert lags(launch(0, 2, 1), launch(10, 2, 2), launch(200, 2, 3), *works) == [6, 7, 7]


def test_what_waited_for_an_event_tells_nothing_of_latencies() -> None:
    events = []
    for i in range(4):
        at, ids = 1000 * i, [10 * i + 1, 10 * i + 2, 10 * i + 3, 10 * i + 4]
        events += [
            launch(at, 2, ids[0]), kernel(COMPUTE, at + 5, 400, ids[0]), runtime("cudaEventRecord", at + 10, 1, ids[1]),
            runtime("cudaStreamWaitEvent", at + 12, 1, ids[2]), runtime("cudaLaunchKernelExC", at + 14, 2, ids[3]),
            kernel("side", at + 406, 20, ids[3], stream=20),
        ]  # fmt: skip
    graph = load(events)
    of_side = [lag for source, _, lag in edges_by_name(graph, EdgeKind.LAUNCH) if source == "cudaLaunchKernelExC.start"]
    assert of_side == [5] * 4, "none of its own kind was free: as long as launches of this rank usually take"
    assert len(edges_by_name(graph, EdgeKind.EVENT_WAIT)) == 4


def test_where_nothing_was_free_a_latency_is_at_most_what_is_plausible() -> None:
    assert lags(kernel(COMPUTE, 0, 500), launch(10, 2, 1), kernel(COMPUTE, 502, 9, 1)) == [10]


def graph_lags(*events: Json) -> list[int]:
    return [lag for *_, lag in edges_by_name(load(list(events)), EdgeKind.GRAPH)]


def test_the_queue_of_the_stream_is_no_latency_of_a_graph_launch() -> None:
    events = [launch(0, 2, 1), kernel(COMPUTE, 6, 9000, 1), runtime("cudaGraphLaunch", 10, 300, 2)]
    assert graph_lags(*events, kernel("in graph", 9010, 9, 2)) == [310], (
        "it had been handed over when the call returned"
    )


def test_a_graph_has_the_least_latency_of_those_that_found_their_stream_idle() -> None:
    events = []
    for i, late in enumerate((12, 40, 20)):
        at = 1000 * i
        events += [runtime("cudaGraphLaunch", at, 30, i + 1), kernel(COMPUTE, at + late, 100, i + 1)]
    events += [launch(3000, 2, 8), kernel("k", 3005, 500, 8)]
    events += [runtime("cudaGraphLaunch", 3010, 30, 9), kernel(COMPUTE, 3510, 100, 9)]
    assert graph_lags(*events) == [12, 12, 20, 40], "12 µs where it was queued for 490; pauses are added to the others"


def test_a_graph_that_began_long_after_its_call_returned_waited_for_something_that_no_edge_describes() -> None:
    assert graph_lags(runtime("cudaGraphLaunch", 0, 30, 1), kernel(COMPUTE, 20_000, 9, 1)) == [40]


def test_work_that_waited_for_what_was_not_recorded_tells_nothing_of_latencies() -> None:
    events = [op("first", 0, 40), *(launch(10 * i + 1, 2, i + 1) for i in range(3))]
    works = [kernel(COMPUTE, 7000, 9, 1), kernel(COMPUTE, 7010, 9, 2), kernel(COMPUTE, 7020, 9, 3)]
    graph = load([*events, *works])
    assert lags(*events, *works) == [10, 10, 10]
    assert not graph.gap[2 * 4], "it waited for work begun before the recording"
    assert [issue.detail for issue in graph.issues if issue.what == "queued_behind_earlier_work"] == [
        "kernels were queued 7 ms before they ran; the device was probably busy with earlier work"
    ]
    assert bound_of(hg.critical_path(graph)).shares["head"] > 99
    for change in ({"kind": "host"}, {"kind": "launch"}, {"kind": "computation"}):
        outcome = hg.what_if(graph).scale(factor=0.0, **change).run()
        assert outcome.makespan_ns >= 7_000_000, "whatever changes in the recording, earlier work ends when it ends"
    assert hg.what_if(graph).remove(name=COMPUTE).run().makespan_ns >= 7_000_000


def test_only_the_first_work_of_a_recording_may_have_waited_for_earlier_work() -> None:
    first = [launch(0, 2, 1), kernel(COMPUTE, 8, 100, 1), launch(10, 2, 2)]
    graph = load([*first, kernel("side", 7000, 9, 2, stream=20)])
    assert graph.gap[graph.gap_kind == GapKind.FIRST_RUN].tolist() == [
        6_982_000 - 90_000  # of the other stream, which may have held it up
    ]


@pytest.mark.parametrize("after_us", [-20, 1, 4])
def test_work_that_starts_as_a_slow_call_returns_was_handed_over_by_the_end_of_it(after_us: int) -> None:
    """Kernels start up to a launch latency after a call that loads their code, also where the stream was busy."""
    steady = [each for i in range(5) for each in (launch(100 * i, 2, i + 1), kernel(COMPUTE, 100 * i + 5, 10, i + 1))]
    loads = [launch(600, 3000, 7), kernel("first", 3600 + after_us, 10, 7)]
    graph = load([*steady, launch(590, 2, 6), kernel(COMPUTE, 595, 80, 6), *loads])
    start = 2 * next(iter(graph.select(name="first")))
    edge = graph.binding[start]
    assert graph.gap[start] == 0
    assert graph.edges.kind[edge] == EdgeKind.LAUNCH
    assert graph.activities.duration[graph.edges.activity[edge]] == 3_000_000, "the time is that of the call"


def test_work_that_a_slow_call_handed_over_late_takes_that_calls_time_with_it() -> None:
    """The first launch loads its kernel for 900 µs: without the call, what follows starts that much sooner."""
    calls = [launch(0, 2, 1), launch(100, 900, 2), launch(2000, 2, 3)]
    graph = load([*calls, kernel(COMPUTE, 6, 9, 1), kernel(COMPUTE, 990, 500, 2), kernel(COMPUTE, 2006, 9, 3)])
    assert [lag for *_, lag in edges_by_name(graph, EdgeKind.LAUNCH)] == [6, 6, 890]
    assert hg.what_if(graph).scale(kind="launch", factor=0.0).run().saved_ns >= 884_000
    assert hg.replay(graph).max_error_ns == 0


def test_work_that_waited_for_its_stream_while_its_call_ran_was_not_handed_over_late() -> None:
    calls = [launch(0, 2, 1), launch(10, 700, 2)]
    assert lags(*calls, kernel(COMPUTE, 6, 594, 1), kernel(COMPUTE, 600, 9, 2)) == [6, 6]


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
    assert GapKind(graph.gap_kind[2 * 3]) == GapKind.OTHER_WORK


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
