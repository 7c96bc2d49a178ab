"""First work of a stream behind work that was begun before the recording, against work that others hold up."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.graph.measures.earlier_work import ends_of_earlier_work, waits_for_earlier_work
from htagraph.queries.path_segments import bound_of
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime

TINY = [launch(300, 3, 99, tid=77), kernel("tiny", 308, 4, 99, stream=20)]
"""A kernel of 4 µs on another stream, from another thread."""


def queue(first: float, count: int = 40, *, stream: int = 7, at: float = 5, lasts: float = 50) -> list[Json]:
    """Return launches every 10 µs, and kernels that run one after another from a moment on."""
    calls = [launch(at + 10 * i, 4, 100 * stream + i) for i in range(count)]
    kernels = [kernel(COMPUTE, first + i * (lasts + 1), lasts, 100 * stream + i, stream=stream) for i in range(count)]
    return [op("model", at - 5, 10 * count + 10), *calls, *kernels]


def behind(graph: DependencyGraph) -> dict[str, float]:
    """Return the names of work behind earlier work, and until when, µs since the job's first activity."""
    waits = waits_for_earlier_work(graph.activities, graph.edges)
    rows = graph.edges.target[waits] >> 1
    until = graph.time[graph.edges.source[waits]] + graph.edges.lag[waits] - graph.origin_ns
    names = [
        f"{graph.names[graph.activities.name[row]]} {graph.lanes[graph.activities.lane[row]].stream}" for row in rows
    ]
    return dict(zip(names, (until / 1000).tolist(), strict=True))


def shares(graph: DependencyGraph) -> dict[str, float]:
    return dict(bound_of(hg.critical_path(graph)).shares)


def test_each_stream_is_judged_by_itself() -> None:
    for events in (queue(9000), [*queue(9000), *TINY]):
        graph = load(events)
        assert behind(graph) == {f"{COMPUTE} 7": 9000}
        assert shares(graph)["head"] > 80
        assert bound_of(hg.critical_path(graph)).cause == "computation"


def test_whatever_the_host_does_earlier_work_ends_when_it_ends() -> None:
    graph = load([*queue(9000), *TINY])
    for scenario in (hg.what_if(graph).infinite_host(), hg.what_if(graph).scale(factor=3.0, kind="host")):
        outcome = scenario.run()
        assert abs(outcome.makespan_ns - outcome.baseline_ns) < 10_000


def test_a_launch_that_begins_the_recording_waits_like_any_other() -> None:
    events = [event for event in queue(9000) if event["name"] != "model"]
    assert shares(load(events))["head"] > 80


def test_work_launched_meanwhile_waits_until_the_queue_of_the_other_stream_runs() -> None:
    beside = [launch(410, 4, 1), kernel("beside", 9020, 9, 1, stream=30)]
    graph = load([*queue(9000), *beside])
    assert behind(graph) == {f"{COMPUTE} 7": 9000}
    start = 2 * int(graph.select(name="beside").activities[0])
    assert graph.gap[start] == 0
    assert graph.time[graph.edges.source[graph.binding[start]]] - graph.origin_ns == 9_000_000


def test_one_kernel_that_starts_late_is_no_queue() -> None:
    graph = load([op("model", 0, 30), launch(5, 4, 1), kernel(COMPUTE, 9000, 50, 1)])
    assert behind(graph) == {}
    assert shares(graph)["gap"] > 90, "nor is the first run of a kernel late for other work"


def test_a_copy_whose_call_waits_for_its_stream_waits_for_earlier_work() -> None:
    copy = "Memcpy HtoD (Pageable -> Device)"
    call = runtime("cudaMemcpyAsync", 5, 9020, 1)
    blocked = kernel(copy, 9000, 20, 1) | {"cat": "gpu_memcpy"}
    after = [event for event in queue(9060, at=9030) if event["name"] != "model"]
    graph = load([op("aten::copy_", 0, 9028), call, blocked, *after])
    assert behind(graph) == {f"{copy} 7": 9000}
    assert bound_of(hg.critical_path(graph)).cause == "computation"


def test_a_kernel_whose_call_takes_long_loads_its_module() -> None:
    graph = load([op("model", 0, 9020), runtime("cudaLaunchKernel", 5, 9005, 1), kernel(COMPUTE, 9000, 20, 1)])
    assert behind(graph) == {}


def test_lateness_that_recurs_is_no_earlier_work() -> None:
    """Another process has the device by turns of 2 ms, and had it when the recording began."""
    events: list[Json] = []
    for turn in range(8):
        now = 2100 * turn
        events += [op("model", now, 40), *(launch(now + 5 + 8 * i, 4, 10 * turn + i) for i in range(4))]
        events += [kernel(COMPUTE, now + 2000 + 13 * i, 12, 10 * turn + i) for i in range(4)]
        events.append(runtime("cudaDeviceSynchronize", now + 45, 2015))
    graph = load(events)
    assert behind(graph) == {}
    assert bound_of(hg.critical_path(graph)).cause == "other_work"


def test_a_stream_that_a_recorded_stream_holds_up_does_not_wait_for_earlier_work() -> None:
    late = queue(9000, stream=30)
    running = [op("other", 0, 5, tid=5), launch(1, 3, 1, tid=5), kernel("large", 8, 8990, 1, stream=20)]
    assert behind(load([*late, *running])) == {}


def test_moving_the_job_does_not_move_who_waits() -> None:
    graph = load([event | {"ts": event["ts"] + 12_345} for event in [*queue(9000), *TINY]])
    assert behind(graph) == {f"{COMPUTE} 7": 9000}


def first_wait(name: str, until: float, *, at: float = 30) -> list[Json]:
    """Return a call that waits for the device from a moment on, and the queue that the host launches afterwards."""
    later = [event for event in queue(until + 60, at=until + 40) if event["name"] != "model"]
    return [op("model", 0, until + 20), runtime(name, at, until + 6 - at), *later]


@pytest.mark.parametrize("name", ["cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize"])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_call_that_waits_beside_an_idle_device_waits_for_earlier_work(name: str, is_first: bool) -> None:  # noqa: FBT001
    events = first_wait(name, 9000)[is_first:]
    graph = load(events)
    assert hg.replay(graph).max_error_ns == 0
    assert bound_of(hg.critical_path(graph)).cause == "computation"
    assert shares(graph)["head"] > 75
    assert hg.what_if(graph).infinite_host().run().saved_ns < 200_000
    assert "earlier work" in next(issue.detail for issue in graph.issues if issue.what == "queued_behind_earlier_work")
    (vertex,) = ends_of_earlier_work(graph).values()
    assert graph.time[vertex] - graph.origin_ns == (9006 - 30 * is_first) * 1000


def test_a_call_that_waits_for_recorded_work_waits_for_no_earlier_work() -> None:
    waits = [launch(5, 4, 1), kernel(COMPUTE, 14, 8980, 1), runtime("cudaDeviceSynchronize", 30, 8976)]
    graph = load([op("model", 0, 9020), *waits, *queue(9100, at=9060)])
    assert not ends_of_earlier_work(graph)
    assert shares(graph).get("head", 0) < 1


def test_calls_that_wait_again_and_again_beside_an_idle_device_wait_for_work_that_is_not_recorded() -> None:
    events: list[Json] = []
    for turn in range(6):
        now = 3000 * turn
        events += [runtime("cudaDeviceSynchronize", now + 10, 2000), launch(now + 2100, 4, turn + 1)]
        events.append(kernel(COMPUTE, now + 2110, 100, turn + 1))
    assert not ends_of_earlier_work(load(events))


def test_a_call_behind_a_launch_whose_work_was_lost_may_wait_for_that() -> None:
    graph = load([*first_wait("cudaDeviceSynchronize", 9000), launch(10, 4, 99)])
    assert not ends_of_earlier_work(graph)


def test_a_launch_inside_a_capture_of_a_cuda_graph_is_no_lost_launch() -> None:
    captured = [runtime("cudaStreamBeginCapture", 2, 1), launch(4, 1, 99), runtime("cudaStreamEndCapture", 6, 1)]
    graph = load([*captured, *first_wait("cudaDeviceSynchronize", 9000)])
    assert len(ends_of_earlier_work(graph)) == 1


def test_a_copy_that_loads_no_module_waits_for_earlier_work_whether_its_call_waits_or_not() -> None:
    copied = kernel("Memcpy DtoH (Device -> Pinned)", 9000, 2, 1) | {"cat": "gpu_memcpy"}
    waits = [runtime("cudaMemcpyAsync", 30, 5, 1), copied, runtime("cudaStreamSynchronize", 40, 8970)]
    later = [event for event in queue(9060, at=9040) if event["name"] != "model"]
    graph = load([op("aten::item", 20, 9000), *waits, *later])
    assert shares(graph)["head"] > 75
    assert bound_of(hg.critical_path(graph)).cause == "computation"
