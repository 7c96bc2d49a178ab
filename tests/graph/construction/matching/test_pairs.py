"""Which sequences of collectives are compared."""

from __future__ import annotations

import pytest

from htagraph.graph.construction.matching.pairs import pairs
from htagraph.graph.construction.matching.sequence_alignment import Track
from tests.graph.construction.matching.test_sequence_alignment import recorded


@pytest.mark.parametrize(("rank", "way", "count"), [(1, 0, 1), (0, 0, 0), (1, 1, 0)])
def test_only_different_ranks_and_opposite_ways_are_worth_a_look(rank: int, way: int, count: int) -> None:
    a, b = recorded(3, 2)
    tracks = [
        Track(i, each, t.rows, t.start, t.end, t.label, t.barrier, 0, certain=False, way=way)
        for i, (each, t) in enumerate(((0, a), (rank, b)))
    ]
    assert len(pairs(tracks)) == count
