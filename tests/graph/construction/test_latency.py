from __future__ import annotations

from htagraph import EdgeKind
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, Json, kernel, launch, load, runtime


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
