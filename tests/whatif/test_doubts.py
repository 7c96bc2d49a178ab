"""Other readings of a recording reproduce it, and predict otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif.doubts import with_possible_waits, without_doubtful_waits
from tests.strategies import OTHER, complete, jobs, load, op, step
from tests.whatif.changes.made import Piece, made


def _moments(state: State) -> np.ndarray:
    return predict(state.graph, state.lag, state.gap, state.head)


def _with_doubt(graph: DependencyGraph) -> DependencyGraph:
    """Return the graph in which each third edge is a guess."""
    confidence = graph.edges.confidence.copy()
    confidence[::3] = 30
    return graph.replace(edges=replace(graph.edges, confidence=confidence))


@given(jobs(tidy=True).map(load))
@settings(max_examples=15)
def test_every_reading_gives_back_the_recording(graph: DependencyGraph) -> None:
    for doubtful in (graph, _with_doubt(graph)):
        for reading in (without_doubtful_waits, with_possible_waits):
            other = reading(initial(doubtful))
            assert other is None or np.array_equal(_moments(other), doubtful.time)


def test_without_a_doubtful_wait_what_was_waited_for_does_not_matter() -> None:
    graph = made([Piece("a", 7, 100), Piece("b", 8, 50, waits=(0,))])
    wait = graph.edges.confidence.copy()
    wait[graph.edges.kind == 7] = 50
    doubtful = graph.replace(edges=replace(graph.edges, confidence=wait))
    state = hg.what_if(doubtful).scale(name="a", factor=0).state
    other = without_doubtful_waits(state)
    assert other is not None
    assert _moments(state).max() < graph.time.max() == _moments(other).max()
    assert without_doubtful_waits(initial(graph)) is None


def test_a_pause_that_ends_when_another_thread_is_done_may_be_a_wait() -> None:
    events = [step(1, 0, 2000), op("before", 0, 100), op("after", 1010, 900)]
    events += [complete("cpu_op", "made", 200, 800, tid=OTHER)]
    graph = load(events)
    state = hg.what_if(graph).scale(name="made", factor=0).state
    other = with_possible_waits(state)
    assert other is not None
    assert _moments(state)[graph.select(name="after").activities * 2] == graph.time.min() + 1_010_000
    assert _moments(other)[graph.select(name="after").activities * 2] < graph.time.min() + 400_000


def test_communication_that_nothing_waits_for_may_be_waited_for() -> None:
    pieces = [
        piece for rank in (0, 1)
        for piece in (Piece("nccl", 8, 300, rank=rank, collective=0), Piece("a", 7, 500, rank=rank),
                      Piece("b", 7, 100, rank=rank))
    ]  # fmt: skip
    graph = made(pieces)
    state = hg.what_if(graph).scale(kind="communication", factor=10).state
    other = with_possible_waits(state)
    assert other is not None
    last = 2 * graph.select(name="b").activities
    assert (_moments(state)[last] == graph.time[last]).all()
    assert (_moments(other)[last] >= graph.time[last] + 2000).all()
