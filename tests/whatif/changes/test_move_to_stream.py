from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.errors import GraphError, SelectionError
from htagraph.core.kinds import EdgeKind
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif.changes.move_to_stream import move_to_stream
from tests.whatif.changes.made import Piece, jobs, made, places


@given(jobs(), st.sampled_from((7, 8, 99)))
@settings(max_examples=20)
def test_moved_work_runs_as_if_it_had_been_launched_there(pieces: list[Piece], stream: int) -> None:
    moves = [piece.name == "gemm_a" and piece.stream != stream for piece in pieces]
    state = initial(made(pieces))
    if not any(moves):
        with pytest.raises(SelectionError):
            move_to_stream(state, stream=stream, name="gemm_a")
        return
    moved = move_to_stream(state, stream=stream, name="gemm_a")
    wanted = made([replace(piece, stream=stream) if goes else piece for piece, goes in zip(pieces, moves, strict=True)])
    assert predict(moved.graph, moved.lag, moved.gap, moved.head).tolist() == wanted.time.tolist()
    moved.graph.topological_order  # noqa: B018 - raises where there is a circle
    lanes = [moved.graph.lanes[lane] for lane in moved.graph.activities.lane[places(pieces)[1]].tolist()]
    assert [lane.stream for lane in lanes] == [
        stream if goes else piece.stream for piece, goes in zip(pieces, moves, strict=True)
    ]


def test_other_edges_and_their_lags_stay() -> None:
    pieces = [Piece("a", 7, 50), Piece("b", 7, 10), Piece("c", 8, 5, waits=(1,)), Piece("d", 7, 3)]
    state = initial(made(pieces))
    moved = move_to_stream(state, stream=8, name="b")

    def others(state: State) -> list[tuple[int, int, int]]:
        edges = state.graph.edges
        rows = zip(edges.source.tolist(), edges.target.tolist(), state.lag.tolist(), edges.kind.tolist(), strict=True)
        return sorted((u, v, lag) for u, v, lag, kind in rows if kind != EdgeKind.STREAM)

    assert others(moved) == others(state)


def test_work_that_would_wait_for_itself_is_refused_with_the_circle() -> None:
    # b is launched before c, but waits for it by a user's edge: on one stream it would also come before it
    pieces = [Piece("a", 7, 5), Piece("b", 8, 5, waits=(2,)), Piece("c", 7, 5)]
    with pytest.raises(GraphError, match=r"move_to_stream: impossible.*edge from"):
        move_to_stream(initial(made(pieces)), stream=8, name="c")
