from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from htagraph import DependencyGraph, EdgeKind, GapKind
from tests import oracles
from tests.strategies import OTHER, Job, Json, jobs, kernel, load, op


def gaps(*events: Json) -> dict[str, int]:
    graph = load(list(events))
    found: dict[str, int] = {}
    for kind, gap in zip(graph.gap_kind.tolist(), graph.gap.tolist(), strict=True):
        if gap:
            found[GapKind(kind).label] = found.get(GapKind(kind).label, 0) + gap // 1000
    return found


def test_time_between_operators_of_a_thread_is_untraced_host_work() -> None:
    assert gaps(op("a", 0, 10), op("b", 500, 10)) == {"host_untraced": 490}


def test_a_stream_that_waits_for_nothing_known_is_idle_without_reason() -> None:
    assert gaps(kernel("a", 0, 10), kernel("b", 500, 10)) == {"stream_idle": 489}, (
        "a stream needs about 1 µs from one work to the next"
    )


def test_a_worker_that_pauses_follows_its_rank_or_is_idle() -> None:
    main = [op("a", 0, 10), op("c", 300, 10), op("d", 400, 10)]
    assert gaps(*main, op("x", 5, 10, OTHER), op("y", 320, 5, OTHER)) == {
        "host_untraced": 290 + 90 + 10, "thread_idle": 5,  # what the worker did before its first operator is not known
    }  # fmt: skip


def test_what_nothing_precedes_is_the_head_of_the_trace() -> None:
    graph = load([op("a", 0, 10), op("b", 5, 10)])
    heads = np.flatnonzero(graph.gap_kind == GapKind.TRACE_HEAD)
    assert heads.tolist() == [0]


def test_gaps_of_ones_own_activities_have_no_cause() -> None:
    acts = pd.DataFrame({"duration_ns": [5, 5], "start_ns": [0, 20]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0], "target": [1]}))
    assert GapKind(graph.gap_kind[2]) == GapKind.OTHER
    assert graph.gap[2] == 15


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_binding_edge_leaves_exactly_the_gap(job: Job) -> None:
    graph = load(job)
    for vertex in range(graph.vertex_count):
        edge = int(graph.binding[vertex])
        allowed = [moment for moment, _ in oracles.allowed(graph, vertex)]
        assert (edge < 0) == (not allowed)
        if edge >= 0:
            mine = int(graph.time[graph.edges.source[edge]] + graph.edges.lag[edge])
            assert mine == max(allowed)
            assert graph.gap[vertex] == graph.time[vertex] - mine
            assert (GapKind(graph.gap_kind[vertex]) == GapKind.NONE) == (graph.gap[vertex] == 0)
            assert graph.edges.target[edge] == vertex
    assert EdgeKind.LAUNCH not in {
        EdgeKind(graph.edges.kind[edge])
        for vertex in range(graph.vertex_count)
        for edge in graph.in_edges[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]].tolist()
        if graph.time[graph.edges.source[edge]] + graph.edges.lag[edge] == graph.time[vertex] - graph.gap[vertex]
        and graph.edges.kind[graph.binding[vertex]] != EdgeKind.LAUNCH
    }
