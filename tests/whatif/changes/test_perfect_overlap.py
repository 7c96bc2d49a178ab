"""Collectives that delay no other work, against the same job made without those waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.queries.weights import initial
from htagraph.whatif.changes.perfect_overlap import perfect_overlap
from tests.whatif.changes.gloo import STEP_US, job
from tests.whatif.changes.made import Order, Piece, by_stream, in_groups, jobs, made, moments


def _apart(group: str | None) -> Order:
    """Return the order where hidden collectives follow their stream but hold up nothing else on it."""

    def order(pieces: Sequence[Piece], i: int) -> list[int]:
        mine = (pieces[i].rank, pieces[i].stream)
        before = [j for j in range(i) if (pieces[j].rank, pieces[j].stream) == mine]
        other = [j for j in before if not in_groups(pieces[j], group)][-1:]
        if pieces[i].collective < 0:
            return other
        return other + [j for j in before if in_groups(pieces[j], group)][-1:]

    return order


@pytest.mark.slow
@pytest.mark.parametrize("group", [None, "even"])
@given(jobs())
@settings(max_examples=20)
def test_perfect_overlap_is_the_job_whose_other_work_waits_for_no_collective(
    group: str | None, pieces: list[Piece]
) -> None:
    assume(any(in_groups(piece, group) for piece in pieces))
    graph = made(pieces)
    got = moments(perfect_overlap(initial(graph), group=group))

    def waits(piece: Piece) -> tuple[int, ...]:
        return tuple(j for j in piece.waits if piece.collective >= 0 or not in_groups(pieces[j], group))

    wanted = made([replace(piece, waits=waits(piece)) for piece in pieces], _apart(group))
    assert got == wanted.time.tolist()
    assert max(got) <= int(graph.time.max())


def test_the_order_on_a_stream_is_bridged_over_a_hidden_collective() -> None:
    pieces = [Piece("a", 7, 100), Piece("nccl", 7, 50, collective=0), Piece("b", 7, 10)]
    assert max(moments(perfect_overlap(initial(made(pieces))))) == 5 + 100 + 50
    assert by_stream(pieces, 2) == [1]


def test_a_kernel_of_no_known_group_is_asked_for_its_name() -> None:
    pieces = [Piece("a", 7, 100), Piece("ncclSend", 8, 50, waits=(0,)), Piece("b", 7, 10, waits=(1,))]
    state = initial(made(pieces))
    assert max(moments(perfect_overlap(state, group="*Send"))) == 5 + 150
    with pytest.raises(SelectionError, match="no communication of group '\\*Recv'"):
        perfect_overlap(state, group="*Recv")


def test_gradients_on_host_threads_are_summed_beside_backward() -> None:
    graph = job()
    outcome = hg.what_if(graph).perfect_overlap().run()
    # the all-reduce begins when the first gradient is ready, 1200 after the step's start, and not after it was asked
    # for
    assert outcome.step_times()["predicted_start_us"].diff().tolist()[1:3] == pytest.approx(
        [STEP_US - 1100] * 2, abs=120
    )
    assert "6 collectives on host threads begin with their first gradient" in outcome.notes[0]
    assert outcome.interval_cause == "what follows communication may not need it"
    assert outcome.high / outcome.speedup > 1.1  # but an optimizer's step does
    needs = hg.what_if(job("Optimizer.step#SGD.step")).perfect_overlap().run()
    assert needs.speedup == outcome.speedup
    assert needs.high / needs.speedup < 1.05
