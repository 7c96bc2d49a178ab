"""Which operator of c10d led to which record of gloo, of jobs whose answer is obvious and of recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.host_communication import HostCalls, call_arguments, host_calls
from tests.host_jobs import host_job, tensor_args, transfer
from tests.reach import SHARED, graph_of
from tests.strategies import OTHER, Json, annotation, complete, op

_GLOO = SHARED / "gloo4_cpu"


def links(graph: DependencyGraph) -> list[tuple[float, float]]:
    """Return (start of the operator, start of what it led to), µs since the first activity."""
    calls = host_calls(graph.activities, graph.names)
    start = (graph.activities.start - graph.origin_ns) / 1000
    return sorted((round(start[a], 3), round(start[b], 3)) for a, b in zip(calls.call, calls.work, strict=True))


def reduced(start: float, duration: float, count: int = 8, tid: int = OTHER) -> Json:
    event = annotation("gloo:all_reduce", start, duration, tid)
    return event | {"args": {"Input Dims": [[count]], "Input type": ["float"]}}


def asks(start: float, count: int = 8) -> Json:
    return op("c10d::allreduce_", start, 5, **tensor_args(count, "False", "-1"))


def test_what_begins_inside_an_operator_was_asked_for_by_it() -> None:
    events = [*transfer("send", 1, 10, 90), *transfer("recv", 1, 100, 120), *transfer("send", 1, 200, 210)]
    graph = host_job({0: events})
    calls = host_calls(graph.activities, graph.names)
    assert links(graph) == [(0.0, 0.1), (90.0, 90.1), (190.0, 190.1)]
    assert set(calls.confidence.tolist()) == {95}
    assert calls.call_of(np.array([-1])).tolist() == [-1]


def test_on_other_threads_the_nth_belongs_to_the_nth() -> None:
    graph = host_job({0: [asks(0), reduced(50, 10), asks(20), reduced(52, 30, tid=3), asks(100), reduced(110, 5)]})
    assert links(graph) == [(0.0, 50.0), (20.0, 52.0), (100.0, 110.0)]


def test_sizes_tell_groups_apart_that_take_their_turns() -> None:
    """The second call's small message overtakes the first's, whose threads are busy."""
    graph = host_job({0: [asks(0, 1000), asks(10, 8), reduced(30, 5, 8), reduced(60, 5, 1000, tid=3)]})
    assert links(graph) == [(0.0, 60.0), (10.0, 30.0)]


def test_what_was_asked_for_before_the_recording_has_no_operator() -> None:
    graph = host_job({0: [reduced(0, 30), asks(10), reduced(40, 30), asks(100)]})
    assert links(graph) == [(10.0, 40.0)]


def test_a_reduce_scatter_that_gloo_does_by_an_all_reduce_is_found() -> None:
    asked = op("c10d::_reduce_scatter_base_", 0, 5)
    graph = host_job({0: [asked, annotation("gloo:all_reduce", 20, 50, OTHER)]})
    assert links(graph) == [(0.0, 20.0)]


def test_an_operator_that_only_passes_on_is_not_the_one_that_asked() -> None:
    outer = complete("cpu_op", "c10d::all_reduce_wrapper", 0, 20)
    graph = host_job({0: [outer, asks(5), reduced(40, 5)]})
    assert links(graph) == [(5.0, 40.0)]


@pytest.mark.parametrize(
    ("name", "concrete", "dims", "types", "expected"),
    [
        ("c10d::send", ["", "", "3", "7"], [[[4, 5]], [], [], []], ["TensorList", "", "Scalar", "Scalar"],
         (3, 7, 20, 20)),
        ("c10d::recv_any_source_", ["", "", "7"], [[[6]], [], []], ["TensorList", "", "Scalar"], (-1, 7, 6, 6)),
        ("c10d::broadcast_", ["", "", "2", "0", "True", "-1"], [[[9]], [], [], [], [], []],
         ["TensorList", "", "Scalar", "Scalar", "Scalar", "Scalar"], (2, -1, 9, 9)),
        ("c10d::_allgather_base_", ["", "", "", "True", "-1"], [[40], [10], [], [], []],
         ["float", "float", "", "Scalar", "Scalar"], (-1, -1, 40, 10)),
        ("c10d::allreduce_", ["", "", "", "", "False", "-1"], [[[]], [], [], [], [], []],
         ["TensorList", "", "", "", "Scalar", "Scalar"], (-1, -1, 1, 1)),
        ("c10d::send", "no list", [], [], (-1, -1, -1, -1)),
    ],
)  # fmt: skip
def test_inputs_say_peer_tag_and_sizes(
    name: str, concrete: object, dims: object, types: object, expected: tuple[int, ...]
) -> None:
    arguments: dict[str, Any] = {"Concrete Inputs": concrete, "Input Dims": dims, "Input type": types}
    call = op(name, 0, 5, **arguments)
    graph = host_job({0: [call]})
    got = call_arguments(graph.activities, graph.names, np.array([0, -1]))
    assert (got.peer[0], got.tag[0], got.elements[0], got.own_elements[0]) == expected
    assert (got.peer[1], got.tag[1], got.elements[1], got.width[1]) == (-1, -1, -1, -1)


def test_without_a_host_backend_nothing_is_linked() -> None:
    assert len(HostCalls.none().call) == 0
    graph = host_job({0: [asks(0)]}, backend="nccl")
    assert len(host_calls(graph.activities, graph.names).work) == 0
    assert "concrete_inputs" not in graph.activities.args, "arguments of calls are read for host backends only"


@pytest.mark.skipif(not _GLOO.exists(), reason="no shared traces")
def test_every_collective_of_a_recording_follows_its_operator() -> None:
    graph = graph_of(_GLOO)
    calls = host_calls(graph.activities, graph.names)
    acts = graph.activities
    assert len(calls.work) == (acts.kind == ActivityKind.HOST_COMMUNICATION).sum() == 24
    assert (acts.rank[calls.call] == acts.rank[calls.work]).all()
    assert (acts.start[calls.call] <= acts.start[calls.work]).all()
