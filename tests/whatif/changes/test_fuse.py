from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from htagraph.core.errors import SelectionError
from htagraph.queries.replay import predict
from htagraph.queries.weights import initial
from htagraph.whatif.changes.fuse import fuse
from tests.whatif.changes.made import Piece, by_stream, jobs, made, places


def _fused_by_hand(pieces: list[Piece], name: str) -> tuple[list[Piece], dict[int, int]]:
    """Return (the job with each run in its first piece's place and the rest empty, last piece of each run by piece)."""
    run: dict[int, int] = {}  # piece → the first of its run
    for i, piece in enumerate(pieces):
        run[i] = i
        before = by_stream(pieces, i)
        if piece.name == name and before and pieces[before[0]].name == name and set(piece.waits) <= set(before):
            run[i] = run[before[0]]
    out = []
    for i, piece in enumerate(pieces):
        waits = tuple(sorted({run[j] for j in piece.waits}))
        if run[i] != i:  # the call is there and takes nothing; the kernel is empty, behind the fused one
            out.append(replace(piece, duration=0, call_ns=0, waits=(run[i],)))
        else:
            together = sum(other.duration for j, other in enumerate(pieces) if run[j] == i)
            out.append(replace(piece, duration=together, waits=waits))
    return out, run


@given(jobs())
@settings(max_examples=20)
def test_fused_kernels_are_one_kernel_of_their_summed_duration(pieces: list[Piece]) -> None:
    wanted, run = _fused_by_hand(pieces, "gemm_a")
    state = initial(made(pieces))
    if all(first == i for i, first in run.items()):
        with pytest.raises(SelectionError, match="no two of the"):
            fuse(state, name="gemm_a")
        return
    fused = fuse(state, name="gemm_a")
    time = predict(fused.graph, fused.lag, fused.gap, fused.head)
    expected = made(wanted, lambda done, i: [] if run[i] != i else [run[j] for j in by_stream(pieces, i)]).time
    calls, works = places(pieces)
    last = {first: i for i, first in run.items()}
    for i in range(len(pieces)):
        assert time[2 * calls[i]] == expected[2 * calls[i]]
        if run[i] == i:
            assert time[2 * works[i]] == expected[2 * works[i]]
            assert time[2 * works[last[i]] + 1] == expected[2 * works[i] + 1]


def test_the_note_says_how_many_kernels_became_how_many() -> None:
    pieces = [Piece(name, 7, 5) for name in "aabaaa"]
    fused = fuse(initial(made(pieces)), name="a")
    assert fused.notes == ("5 kernels became 2; 3 launch calls vanished",)


def test_what_waited_for_one_of_them_waits_for_the_last() -> None:
    pieces = [Piece("a", 7, 100), Piece("a", 7, 30), Piece("b", 8, 1, waits=(0,))]
    fused = fuse(initial(made(pieces)), name="a")
    time = predict(fused.graph, fused.lag, fused.gap, fused.head)
    assert time[2 * places(pieces)[1][2]] == 5 + 130
