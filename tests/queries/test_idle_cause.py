from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from htagraph import EdgeKind
from htagraph.queries.idle_cause import CAUSES, binding_kind, pause_cause
from tests import oracles
from tests.strategies import COMPUTE, Json, kernel, launch, load, traces


@given(traces())
@settings(max_examples=20)
def test_the_binding_edge_is_the_one_that_allowed_the_work_last(events: list[Json]) -> None:
    graph = load(events)
    binding = binding_kind(graph)
    for vertex in range(graph.vertex_count):
        edges = oracles.allowed(graph, vertex)
        last = [kind for moment, kind in edges if moment == max(edges)[0]]
        expected = "launch" if "launch" in last else next(iter(last), None)
        assert (EdgeKind(binding[vertex]).label if binding[vertex] >= 0 else None) == expected


def test_of_equals_the_launch_binds() -> None:
    graph = load([launch(5, 1, 1), kernel(COMPUTE, 5, 3, 1), launch(8, 1, 2), kernel(COMPUTE, 8, 3, 2)])
    assert EdgeKind(binding_kind(graph)[2 * 3]) == EdgeKind.LAUNCH


@pytest.mark.parametrize(
    ("launch_at", "launch_us", "pause_us", "cause"),
    [
        (880, 2, 900, "host_wait"),  # launched after the stream fell idle, and started soon after
        (40, 2, 900, "other"),  # launched late, but most of the pause came after that: it waited for something else
        (0, 2, 29, "kernel_wait"),
        (0, 2, 30, "other"),
        (1, 800, 900, "host_wait"),  # the call began early, but took most of the pause
        (1, 200, 900, "other"),
    ],
)
def test_a_pause_has_one_cause(launch_at: float, launch_us: float, pause_us: float, cause: str) -> None:
    first = kernel(COMPUTE, 5, 5, 1)
    second = kernel(COMPUTE, 10 + pause_us, 5, 2)
    graph = load([launch(0, 1, 1), first, launch(launch_at, launch_us, 2), second])
    work = np.array([3])
    found = pause_cause(graph, binding_kind(graph), work, graph.activities.end[np.array([1])])
    assert cause in CAUSES
    assert found.tolist() == [cause]
