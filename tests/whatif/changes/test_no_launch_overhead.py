from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.core.errors import NothingMeetsError
from tests.strategies import load, op
from tests.whatif.changes.made import Piece, made, places


def test_launches_and_their_latency_vanish() -> None:
    pieces = [Piece("gemm", 7, 100), Piece("gemm", 8, 100)]
    outcome = hg.what_if(made(pieces)).no_launch_overhead().run()
    assert outcome.makespan_ns == 100


def test_only_those_asked_for() -> None:
    pieces = [Piece("gemm", 7, 100, rank=rank) for rank in (0, 1)]
    graph = made(pieces)
    _, works = places(pieces)
    time = hg.what_if(graph).no_launch_overhead(rank=1).run().time
    assert time[2 * works[0]] == graph.time[2 * works[0]]
    assert time[2 * works[1]] == 0


def test_a_job_without_launch_calls_says_so() -> None:
    with pytest.raises(NothingMeetsError, match=r"^no launch calls were recorded$"):
        hg.what_if(load([op("aten::mm", 0, 10)])).no_launch_overhead().run()
