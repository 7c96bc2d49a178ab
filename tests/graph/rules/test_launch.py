from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from htagraph import EdgeKind
from tests.oracles import edges_by_name, join
from tests.reach import REAL, graph_of, label, raw_events
from tests.strategies import COMPUTE, LAUNCH, Json, kernel, launch, load, runtime, traces

DEVICE = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events"}
RUNTIME = {"cuda_runtime", "Runtime", "cuda_driver", "mtia_runtime"}


def issues(events: list[Json]) -> dict[str, int]:
    return {issue.what: issue.count for issue in load(events).issues}


def test_work_waits_for_the_start_of_its_launch() -> None:
    graph = load([launch(0, 3, 1), kernel(COMPUTE, 5, 4, 1)])
    assert edges_by_name(graph, EdgeKind.LAUNCH) == [(f"{LAUNCH}.start", f"{COMPUTE}.start", 5)]


def test_one_launch_may_own_many_kernels() -> None:
    graph = load([runtime("cudaGraphLaunch", 0, 3, 1), *(kernel(COMPUTE, 5 + 5 * i, 4, 1) for i in range(3))])
    assert not edges_by_name(graph, EdgeKind.LAUNCH)
    assert len(edges_by_name(graph, EdgeKind.GRAPH)) == 3


def test_the_lag_is_the_usual_latency_on_an_idle_stream_or_what_was_observed() -> None:
    latencies = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 94]
    events = [launch(100 * i, 1, i + 1) for i in range(11)]
    events += [kernel(COMPUTE, 100 * i + latency, 1, i + 1) for i, latency in enumerate(latencies)]
    graph = load(events)
    assert [lag for *_, lag in edges_by_name(graph, EdgeKind.LAUNCH)] == [4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13]
    assert graph.gap[2 * 21] == 85_000, "an outlier is no latency: what it needed beyond the median is its gap"


def test_waiting_for_a_busy_stream_is_no_launch_latency() -> None:
    events = [launch(0, 1, 1), kernel(COMPUTE, 4, 50, 1), launch(2, 1, 2), kernel(COMPUTE, 54, 5, 2)]
    assert [lag for *_, lag in edges_by_name(load(events), EdgeKind.LAUNCH)] == [4, 4]


def test_work_that_starts_before_its_launch_is_kept_and_reported() -> None:
    events = [launch(10, 3, 1), kernel(COMPUTE, 8, 4, 1)]
    assert edges_by_name(load(events), EdgeKind.LAUNCH) == [(f"{LAUNCH}.start", f"{COMPUTE}.start", -2)]
    assert issues(events)["negative_launch_latency"] == 1


def test_work_an_age_before_its_launch_is_refused_and_reported() -> None:
    events = [launch(100_000, 3, 1), kernel(COMPUTE, 0, 4, 1)]
    assert edges_by_name(load(events), EdgeKind.LAUNCH) == []
    assert issues(events)["edge_refused"] == 1


def test_work_without_its_launch_is_kept_and_reported() -> None:
    events = [kernel(COMPUTE, 8, 4, 77)]
    assert edges_by_name(load(events), EdgeKind.LAUNCH) == []
    assert issues(events)["launch_missing"] == 1


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_every_launch_pair_of_the_file_is_an_edge_no_tighter_than_observed(events: list[Json]) -> None:
    graph = load(events)
    is_launch = np.isin(graph.edges.kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH))
    assert is_launch.sum() == sum(join(events).values())
    source, target = graph.edges.source[is_launch], graph.edges.target[is_launch]
    assert (graph.edges.lag[is_launch] <= graph.time[target] - graph.time[source]).all()


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=label)
def test_a_real_trace_has_a_launch_edge_for_all_work_whose_correlation_a_call_has(path: Path) -> None:
    graph = graph_of(path)
    called: set[int] = set()
    work: Counter[int] = Counter()
    for event in raw_events(path):
        correlation = int((event.get("args") or {}).get("correlation", 0) or 0)
        if event.get("ph") == "X" and event.get("cat") in RUNTIME:
            called.add(correlation)
        if event.get("ph") == "X" and event.get("cat") in DEVICE:
            work[correlation] += 1
    known = sum(count for correlation, count in work.items() if correlation > 0 and correlation in called)
    refused = sum(issue.count for issue in graph.issues if issue.detail.startswith(("launch dep", "graph dep")))
    assert int(np.isin(graph.edges.kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH)).sum()) == known - refused
