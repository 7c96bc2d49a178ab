from __future__ import annotations

from htagraph import EdgeKind
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, kernel, load, runtime


def test_the_first_work_on_each_stream_needs_the_latency_of_the_launch() -> None:
    works = [kernel(COMPUTE, 15, 4, 1), kernel(COMPUTE, 20, 4, 1), kernel("other", 18, 4, 1, stream=9)]
    graph = load([runtime("cudaGraphLaunch", 0, 3, 1), *works])
    assert edges_by_name(graph, EdgeKind.GRAPH) == sorted([
        ("cudaGraphLaunch.start", f"{COMPUTE}.start", 15),
        ("cudaGraphLaunch.start", f"{COMPUTE}.start", 0),
        ("cudaGraphLaunch.start", "other.start", 18),
    ])  # fmt: skip


def test_graphs_of_other_sizes_have_latencies_of_their_own() -> None:
    events = [runtime("cudaGraphLaunch", 0, 3, 1), kernel(COMPUTE, 15, 4, 1)]
    events += [runtime("cudaGraphLaunch", 100, 3, 2), kernel(COMPUTE, 140, 4, 2), kernel(COMPUTE, 150, 4, 2)]
    events += [runtime("cudaGraphLaunch", 200, 3, 3), kernel(COMPUTE, 211, 4, 3)]
    lags = [lag for *_, lag in edges_by_name(load(events), EdgeKind.GRAPH)]
    assert sorted(lags) == [0, 11, 15, 40], "15 µs: 11 as its class's least, the rest is how this launch came"


def test_what_no_graph_launched_has_no_graph_edge() -> None:
    graph = load([runtime("cudaLaunchKernel", 0, 3, 1), kernel(COMPUTE, 15, 4, 1)])
    assert edges_by_name(graph, EdgeKind.GRAPH) == []
