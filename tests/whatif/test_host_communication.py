"""Communication on host threads: who asked for it, its gradients, and what waits for it."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.host_communication import asked_at, first_gradient, next_moment, waits_for
from tests.whatif.changes.gloo import job


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return job()


def test_the_operator_that_asked_is_known(graph: DependencyGraph) -> None:
    work = np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)
    call = graph.edges.source[asked_at(graph, work)] >> 1
    assert {graph.names[name] for name in graph.activities.name[call]} == {"c10d::allreduce_"}
    after = next_moment(graph, call)
    assert (graph.time[after] >= graph.time[2 * call + 1]).all()


def test_the_first_gradient_since_the_last_communication(graph: DependencyGraph) -> None:
    work = np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)
    gradient = first_gradient(graph, work, graph.time[graph.edges.source[asked_at(graph, work)]])
    assert (gradient >= 0).all()
    start = (graph.time[2 * gradient] - graph.origin_ns) // 1000
    assert sorted(set(start.tolist())) == [1100, 6100, 11100]


def test_the_thread_that_asked_waits_for_the_end(graph: DependencyGraph) -> None:
    work = np.flatnonzero(graph.activities.kind == ActivityKind.HOST_COMMUNICATION)
    waits = waits_for(graph, work)
    names = {graph.names[graph.activities.name[target >> 1]] for target in graph.edges.target[waits].tolist()}
    assert names == {"optimize"}
