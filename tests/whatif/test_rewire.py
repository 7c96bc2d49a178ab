"""What structural changes owe to the changes before and after them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import htagraph as hg
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import asked_at
from htagraph.queries.replay import predict
from htagraph.queries.weights import NEVER, initial
from htagraph.whatif.rewire import first_gradient, launch_order, next_moment, rewired, waits_for, with_waits
from htagraph.whatif.scenario import Scenario
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op
from tests.whatif.changes.gloo import job
from tests.whatif.changes.made import Piece, jobs, made, places


def _times(pieces: list[Piece], factor: int) -> list[Piece]:
    return [replace(piece, duration=factor * piece.duration) if piece.name == "gemm_a" else piece for piece in pieces]


@given(jobs())
@settings(max_examples=20)
def test_weights_may_change_before_and_after_the_structure(pieces: list[Piece]) -> None:
    assume(any(piece.name == "gemm_a" for piece in pieces) and any(piece.collective >= 0 for piece in pieces))
    job = hg.what_if(made(pieces))
    before = job.scale(factor=3, name="gemm_a").move_to_stream(stream=33, name="gemm_a").no_overlap().run()
    after = job.move_to_stream(stream=33, name="gemm_a").no_overlap().scale(factor=3, name="gemm_a").run()
    assert before.time.tolist() == after.time.tolist()
    again = hg.what_if(made(_times(pieces, 3))).move_to_stream(stream=33, name="gemm_a").no_overlap().run()
    assert again.time.tolist() == before.time.tolist()


def test_what_moved_to_a_stream_runs_there_in_the_order_of_launches_wherever_it_started_before() -> None:
    """The last kernel was recorded on a stream of its own, before the one that was launched ahead of it."""
    stream = [("gemm_a", 7, 99, -1), ("gemm_a", 7, 1, -1), ("nccl_all_reduce", 9, 5, 1), ("gemm_a", 8, 1, -1)]
    pieces = [Piece(name, on, long, rank=rank, collective=which) for rank in (0, 1) for name, on, long, which in stream]
    graph = hg.what_if(made(pieces)).move_to_stream(stream=33, name="gemm_a").no_overlap().run().graph
    _, kernels = places(pieces)
    waits = set(zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True))
    for rank in (0, 4):
        assert (2 * kernels[rank + 2] + 1, 2 * kernels[rank + 3]) in waits
        assert launch_order(graph, np.array(kernels[rank : rank + 4])).tolist() == kernels[rank : rank + 4]


def test_the_predicted_graph_is_sound_and_replays_to_the_prediction() -> None:
    graph = hg.load("data/demo")
    for scenario in (
        hg.what_if(graph).fuse(kind="computation"),
        hg.what_if(graph).move_to_stream(stream=99, name="*gemm*"),
        hg.what_if(graph).perfect_overlap(),
        hg.what_if(graph).no_overlap(),
        hg.what_if(graph).fix_straggler(),
    ):
        outcome = scenario.run()
        outcome.graph.check()
        assert hg.replay(outcome.graph).max_error_ns == 0
        assert outcome.makespan_ns == int(outcome.graph.time.max()) - graph.origin_ns


def test_noise_stays_on_the_edges_it_was_for() -> None:
    pieces = [Piece(name, stream, 1000 * (i + 1)) for i, (name, stream) in enumerate((("a", 7), ("b", 7), ("c", 8)))]
    job = hg.what_if(made(pieces))
    first = job.jitter(sigma=0.2, runs=5, name="c").move_to_stream(stream=7, name="c").run().samples_ns
    second = job.move_to_stream(stream=7, name="c").jitter(sigma=0.2, runs=5, name="c").run().samples_ns
    assert first.tolist() == second.tolist()
    assert len(set(first.tolist())) > 1


def test_a_moment_without_predecessors_stays_where_it_was() -> None:
    pieces = [Piece("a", 7, 100), Piece("b", 7, 10)]
    graph = made(pieces)
    start = 2 * places(pieces)[1][1]
    left = graph.edges.target != start
    state = rewired(initial(graph), graph.edges.take(left), graph.edges.lag[left], "test")
    assert predict(state.graph, state.lag, state.gap, state.head).tolist() == graph.time.tolist()


def test_edges_that_constrain_nothing_leave_and_of_parallel_ones_the_largest_lag_counts() -> None:
    pieces = [Piece("a", 7, 100), Piece("b", 7, 10)]
    graph = made(pieces)
    source, target = (2 * np.array([work]) + side for work, side in zip(places(pieces)[1], (1, 0), strict=True))
    twice = Edges.of(source, target, 0, EdgeKind.STREAM, Provenance.ORDER)
    edges = Edges.concatenate([graph.edges, twice])
    state = rewired(initial(graph), edges, np.concatenate([graph.edges.lag, [7]]), "test")
    assert len(state.lag) == len(graph.edges)
    assert predict(state.graph, state.lag, state.gap, state.head).max() == graph.time.max() + 7
    lag = np.where(edges.kind == EdgeKind.STREAM, NEVER, np.concatenate([graph.edges.lag, [7]]))
    assert len(rewired(initial(graph), edges, lag, "test").lag) == len(graph.edges) - 1


@pytest.mark.parametrize("name", ["fuse", "move_to_stream", "perfect_overlap", "no_overlap"])
def test_recorded_lags_and_gaps_survive(name: str) -> None:
    graph = hg.load("data/demo")
    given: dict[str, dict[str, Any]] = {
        "fuse": {"kind": "computation"}, "move_to_stream": {"name": "*gemm*", "stream": 99},
    }  # fmt: skip
    options = given.get(name, {})
    after = getattr(hg.what_if(graph).scale(factor=0.5), name)(**options).state.graph
    assert np.array_equal(after.gap, graph.gap)
    assert np.array_equal(after.gap_kind, graph.gap_kind)
    kept = {(u, v): lag for u, v, lag in zip(after.edges.source, after.edges.target, after.edges.lag, strict=True)}
    bodies = np.flatnonzero(graph.edges.kind == EdgeKind.BODY)
    for edge in bodies[:500].tolist():
        pair = (graph.edges.source[edge], graph.edges.target[edge])
        assert kept[pair] == graph.edges.lag[edge]


@given(jobs())
@settings(max_examples=20)
def test_more_waits_give_the_same_times_as_a_graph_built_with_them(pieces: list[Piece]) -> None:
    state = initial(made(pieces))
    graph = state.graph
    place = np.empty(graph.vertex_count, np.int64)
    place[graph.topological_order] = np.arange(graph.vertex_count)
    ends = np.argsort(place)[[1, graph.vertex_count // 2, -2]]
    source, target = ends[[0, 0, 1]], ends[[1, 2, 2]]  # some of them may be parallel to edges of the graph
    lag = np.array([5_000, 900_000, 70_000])
    waits = Edges.of(source, target, lag, EdgeKind.THREAD, Provenance.INFERRED)
    with_them = with_waits(state, waits, lag, "more waits")
    anew = rewired(state, Edges.concatenate([graph.edges, waits]), np.concatenate([state.lag, lag]), "more waits")
    assert with_them is not None
    assert with_waits(state, waits, lag, "more waits") is not None  # the second time from what is kept
    times, expected = (predict(each.graph, each.lag, each.gap, each.head).tolist() for each in (with_them, anew))
    assert times == expected


def test_waits_that_exclude_each_other_are_none() -> None:
    state = initial(hg.load("data/demo", ranks=[0]))
    first, last = state.graph.topological_order[[0, -1]]
    waits = Edges.of(np.array([last]), np.array([first]), 0, EdgeKind.THREAD, Provenance.INFERRED)
    both = Edges.concatenate([waits, Edges.of(waits.target, waits.source, 0, EdgeKind.THREAD, Provenance.INFERRED)])
    assert with_waits(state, both, np.zeros(2, np.int64), "waits") is None


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


@pytest.fixture(scope="module")
def of_names() -> DependencyGraph:
    return load([
        annotation("phase", 0, 100), op("a", 0, 20), op("b", 5, 10), op("c", 30, 70), launch(40, 10, 1),
        kernel(COMPUTE, 60, 30, 1),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (
            lambda s: s.scale(name="a", factor=0.5),
            "scaled 0.01 ms self time of a, 50 % of the time inside it; op='a' scales everything inside",
        ),
        (
            lambda s: s.remove(name="c"),
            "removed 0.06 ms self time of c, 60 % of the time inside it; op='c' removes everything inside",
        ),
        (
            lambda s: s.set_duration(name="a", ns=5),
            "set 0.01 ms self time of a, 50 % of the time inside it; op='a' sets everything inside",
        ),
        (
            lambda s: s.jitter(sigma=0.1, name="b"),
            "varied 0.01 ms self time of b, 100 % of the time inside it; op='b' varies everything inside",
        ),
        (
            lambda s: s.scale(name="phase", factor=0.5),
            "scaled 0.13 ms: all the time inside phase, kernels launched there included",
        ),
    ],
)
def test_the_note_tells_self_time_from_the_time_inside(of_names: DependencyGraph, change: object, note: str) -> None:
    scenario: Scenario = change(hg.what_if(of_names))  # type: ignore[operator]
    assert note in scenario.run().notes


def test_a_kernel_or_what_is_inside_an_operator_needs_no_note_on_time_inside(of_names: DependencyGraph) -> None:
    """That the kernel hides behind the host, so that nothing is gained, is another note."""
    scenario = hg.what_if(of_names)
    assert not scenario.scale(op="a", factor=0.5).run().notes
    assert not [note for note in scenario.scale(name=COMPUTE, factor=0.5).run().notes if "inside" in note]
    assert not scenario.scale(kind="op", factor=0.5).run().notes
