"""What takes longer on a rank than on its peers: a hand-made job in which the answer is obvious."""

from __future__ import annotations

import numpy as np

from htagraph.core.naming import BETWEEN_OPERATORS
from htagraph.queries.blame import chains_of
from htagraph.queries.rank_differences import Difference, alone_work, rank_differences
from tests.strategies import Json, load, op, step


def test_differences_are_totals_by_name_the_largest_first() -> None:
    """Rank 1 stalls once in `aten::cat`, writes a log that nobody else writes, and does `aten::mm` like the others."""
    events: dict[int, list[Json]] = {}
    for rank in range(3):
        slow = rank == 1
        events[rank] = [step(0, 0, 1000), op("aten::mm", 10, 40), op("aten::cat", 60, 20)]
        events[rank] += [op("aten::cat", 100, 220 if slow else 20), op("aten::mm", 400, 40)]
        events[rank] += [op("log", 500, 30)] if slow else []
    graph = load(events)
    own, peers = chains_of(graph).own, np.array([0, 2])
    first, second, *_ = rank_differences(graph, own, 1, peers, top=9)
    assert first == Difference("aten::cat", 240.0, 40.0, 2, 2, 220.0)
    assert first.more_us == 200.0
    assert second == Difference("log", 30.0, 0.0, 1, 0, 30.0)
    assert [each.name for each in rank_differences(graph, own, 0, np.array([2]))] == []
    assert [each.name for each in rank_differences(graph, own, 0, np.array([1]))] == [BETWEEN_OPERATORS]
    assert rank_differences(graph, own, 2, np.array([0, 1])) == [], "one of the others takes as long"
    assert [alone_work(graph, own, rank) for rank in range(3)] == [(0, 0.0), (1, 30.0), (0, 0.0)]
