from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

from htagraph.core.errors import SelectionError
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif.changes.no_overlap import no_overlap
from htagraph.whatif.changes.perfect_overlap import perfect_overlap
from htagraph.whatif.rewire import launch_order
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load, op
from tests.whatif.changes.made import Order, Piece, by_stream, jobs, made


def _time(state: State) -> list[int]:
    return predict(state.graph, state.lag, state.gap, state.head).tolist()


def _hidden(piece: Piece, group: str | None) -> bool:
    return piece.collective >= 0 and group in (None, "even" if piece.collective % 2 == 0 else "odd")


def _apart(group: str | None) -> Order:
    """Return the order where hidden collectives follow their stream but hold up nothing else on it."""

    def order(pieces: Sequence[Piece], i: int) -> list[int]:
        mine = (pieces[i].rank, pieces[i].stream)
        before = [j for j in range(i) if (pieces[j].rank, pieces[j].stream) == mine]
        other = [j for j in before if not _hidden(pieces[j], group)][-1:]
        if pieces[i].collective < 0:
            return other
        return other + [j for j in before if _hidden(pieces[j], group)][-1:]

    return order


@pytest.mark.parametrize("group", [None, "even"])
@given(jobs())
@settings(deadline=None, max_examples=60)
def test_perfect_overlap_is_the_job_whose_other_work_waits_for_no_collective(
    group: str | None, pieces: list[Piece]
) -> None:
    assume(any(_hidden(piece, group) for piece in pieces))
    graph = made(pieces)
    got = _time(perfect_overlap(initial(graph), group=group))

    def waits(piece: Piece) -> tuple[int, ...]:
        return tuple(j for j in piece.waits if piece.collective >= 0 or not _hidden(pieces[j], group))

    wanted = made([replace(piece, waits=waits(piece)) for piece in pieces], _apart(group))
    assert got == wanted.time.tolist()
    assert max(got) <= int(graph.time.max())


def _in_line(pieces: list[Piece], group: str | None) -> list[Piece]:
    """Return the pieces where each waits by hand for what no overlap makes it wait for."""
    out = []
    for i, piece in enumerate(pieces):
        mine = [j for j in range(i) if pieces[j].rank == piece.rank]
        if _hidden(piece, group):
            more = [j for j in mine if pieces[j].collective < 0]
        elif piece.collective < 0:
            more = [j for j in mine if _hidden(pieces[j], group)]
        else:
            more = []
        out.append(replace(piece, waits=tuple(sorted({*piece.waits, *more}))))
    return out


@pytest.mark.parametrize("group", [None, "odd"])
@given(jobs())
@settings(deadline=None, max_examples=60)
def test_no_overlap_is_the_job_whose_collectives_wait_for_all_computation_before(
    group: str | None, pieces: list[Piece]
) -> None:
    assume(any(_hidden(piece, group) for piece in pieces))
    graph = made(pieces)
    got = _time(no_overlap(initial(graph), group=group))
    assert got == made(_in_line(pieces, group)).time.tolist()
    assert max(got) >= int(graph.time.max())


def test_the_order_on_a_stream_is_bridged_over_a_hidden_collective() -> None:
    pieces = [Piece("a", 7, 100), Piece("nccl", 7, 50, collective=0), Piece("b", 7, 10)]
    assert max(_time(perfect_overlap(initial(made(pieces))))) == 5 + 100 + 50
    assert by_stream(pieces, 2) == [1]


def test_a_kernel_of_no_known_group_is_asked_for_its_name() -> None:
    pieces = [Piece("a", 7, 100), Piece("ncclSend", 8, 50, waits=(0,)), Piece("b", 7, 10, waits=(1,))]
    state = initial(made(pieces))
    assert max(_time(perfect_overlap(state, group="*Send"))) == 5 + 150
    with pytest.raises(SelectionError, match="no communication kernel of group '\\*Recv'"):
        perfect_overlap(state, group="*Recv")


@pytest.mark.parametrize("change", [perfect_overlap, no_overlap])
def test_a_group_that_is_not_there_is_an_error_that_names_those_that_are(
    change: Callable[..., State],
) -> None:
    pieces = [Piece("nccl", 7, 5, collective=0), Piece("nccl", 7, 5, collective=1)]
    with pytest.raises(SelectionError, match="process groups: even, odd"):
        change(initial(made(pieces)), group="tensor*")


def test_collectives_on_host_threads_are_refused_with_the_reason() -> None:
    graph = load({0: [op("gloo:all_reduce", 0, 10), op("aten::mm", 20, 5)]})
    with pytest.raises(SelectionError, match="collectives on host threads are no kernels"):
        no_overlap(initial(graph))


def test_work_from_before_the_recording_comes_before_all_that_was_launched_in_it() -> None:
    events = [
        kernel(COMPUTE, 0, 50),  # enqueued before the recording began, as was the first collective
        kernel(COMMUNICATE, 10, 30, stream=20),
        launch(12, 2, 1), launch(16, 2, 2), launch(20, 2, 3),
        kernel(COMMUNICATE, 45, 30, stream=20, correlation=1),
        kernel(COMPUTE, 60, 10, correlation=2), kernel(COMPUTE, 71, 5, correlation=3),
    ]  # fmt: skip
    graph = load(events)
    order = launch_order(graph, np.flatnonzero(graph.activities.on_device))
    assert (graph.time[2 * order] - graph.origin_ns).tolist() == [0, 10_000, 45_000, 60_000, 71_000]
    time = _time(no_overlap(initial(graph)))
    starts = [time[2 * each] - graph.origin_ns for each in order.tolist()]
    ends = [time[2 * each + 1] - graph.origin_ns for each in order.tolist()]
    assert all(start >= end for start, end in zip(starts[1:], ends, strict=False))
