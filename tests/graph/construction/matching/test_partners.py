"""Which sends go with which receives: only where time leaves no doubt. Pipelines are in `tests/graph/rules`."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.graph.construction.matching.partners import partners
from htagraph.graph.construction.matching.sequence_alignment import Track


def sequence(number: int, rank: int, way: int, start: np.ndarray, end: np.ndarray) -> Track:
    same = np.zeros(len(start), np.int64)
    return Track(number, rank, same, start, end, same, same == 0, 0, certain=False, pairwise=True, way=way)


def transfers(seed: int, offset: float = 0.0, late_ns: float = 0.0, count: int = 20) -> list[Track]:
    """Return a send of rank 0 and its receive on rank 1, whose clock is `offset` ahead, that ends `late_ns` later."""
    draw = np.random.default_rng(seed)
    ends = np.cumsum(draw.uniform(400_000, 900_000, count))
    starts = ends[:, None] - draw.uniform(20_000, 300_000, (count, 2))
    return [
        sequence(0, 0, 1, starts[:, 0], ends),
        sequence(1, 1, -1, starts[:, 1] + offset, ends + late_ns + offset),
    ]


def united(tracks: list[Track]) -> list[list[int]]:
    return sorted(sorted(each.shift) for each in partners(tracks, {track.rank: track.rank for track in tracks}))


@pytest.mark.parametrize("seed", range(4))
def test_what_ends_together_on_right_clocks_is_linked(seed: int) -> None:
    assert united(transfers(seed, late_ns=1_000)) == [[0, 1]]


@pytest.mark.parametrize("seed", range(4))
def test_one_direction_alone_does_not_prove_a_clock_offset(seed: int) -> None:
    assert united(transfers(seed, offset=3e6)) == []


def test_sends_are_no_partners_of_sends() -> None:
    send, receive = transfers(1)
    assert united([send, sequence(1, 1, 1, receive.start, receive.end)]) == []


def test_two_equally_good_partners_leave_both_unlinked() -> None:
    send, receive = transfers(1)
    twin = sequence(2, 2, -1, receive.start + 10.0, receive.end + 10.0)
    assert united([send, receive, twin]) == []
    stranger = transfers(7)[1]
    assert united([send, receive, sequence(2, 2, -1, stranger.start, stranger.end)]) == [[0, 1]]
