"""Whether it is told how the interruptions of ranks lie in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from htagraph import DependencyGraph
from htagraph.queries.interrupted import Interruptions, interrupted
from htagraph.queries.interrupted_ranks import InterruptedRanks, interrupted_ranks
from tests.queries.test_interrupted import MEGATRON
from tests.reach import graph_of
from tests.strategies import load, op

SLOTS = 60


def ranks_that_stop(stops: Callable[[int, int], bool], ranks: int = 4) -> InterruptedRanks:
    """Return the pattern of ranks of which each is stopped in some of sixty slots of 10 µs, by rank and slot."""
    graph = load({rank: [op(f"op{slot}", 10 * slot, 10) for slot in range(SLOTS)] for rank in range(ranks)})
    graph = graph.replace(clocks=())  # of ranks whose clocks are known
    return interrupted_ranks(graph, _stopped(graph, stops))


def _stopped(graph: DependencyGraph, stops: Callable[[int, int], bool]) -> Interruptions:
    acts = graph.activities
    slot = (acts.start - acts.start.min()) // 10_000
    rows = np.array([i for i in range(len(acts)) if stops(int(acts.rank[i]), int(slot[i]))], np.int64)
    lasts = np.full(len(rows), 10_000)
    return Interruptions(np.full(len(rows), -1), 2 * rows + 1, rows, lasts, lasts // 100)


def test_ranks_that_go_on_two_at_a_time_do_so_in_turn() -> None:
    found = ranks_that_stop(lambda rank, slot: (rank + slot) % 4 < 2)
    assert (found.pattern, found.going, found.share) == ("in turn", 2, 1.0)
    assert found.by_chance == pytest.approx(6 / 16)  # of four coins
    assert found.shares == dict.fromkeys(range(4), 0.5)


def test_ranks_that_stop_at_the_same_moments_do_so_together() -> None:
    found = ranks_that_stop(lambda rank, slot: slot % 5 == 0 or (rank, slot) == (1, 7))
    assert found.pattern == "together"
    assert found.share == pytest.approx(12 / 13)


def test_of_ranks_that_stop_at_any_time_nothing_is_told() -> None:
    chosen = np.random.default_rng(1).random((4, SLOTS)) < 0.3
    assert ranks_that_stop(lambda rank, slot: bool(chosen[rank, slot])).pattern == ""
    assert ranks_that_stop(lambda rank, slot: slot % 2 == 0, ranks=1).pattern == ""
    assert ranks_that_stop(lambda rank, slot: False).pattern == ""


@pytest.mark.skipif(not MEGATRON.exists(), reason="no shared traces")
def test_eight_ranks_of_a_real_job_go_on_two_by_two() -> None:
    graph = graph_of(MEGATRON)
    ranks = interrupted_ranks(graph, interrupted(graph))
    assert (ranks.pattern, ranks.going) == ("in turn", 2)
    assert ranks.share > 2 * ranks.by_chance
