"""Which sequences of collectives belong together: those that met, under any clocks, and no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.graph.construction.matching import clusters
from htagraph.graph.construction.matching.alignment import Fit, Track, fit_pair
from htagraph.graph.construction.matching.clusters import cluster, partners
from tests.graph.construction.matching.test_alignment import cut, recorded, track


@given(st.integers(0, 10**6), st.lists(st.integers(0, 4), min_size=4, max_size=4))
@settings(max_examples=30)
def test_ranks_that_met_are_one_cluster_with_their_places(seed: int, heads: list[int]) -> None:
    tracks = [cut(whole, head, 1e6 * whole.rank) for whole, head in zip(recorded(seed, 4), heads, strict=True)]
    (found,) = cluster(tracks)
    assert {number: shift - found.shift[0] for number, shift in found.shift.items()} == {
        number: head - heads[0] for number, head in enumerate(heads)
    }


def test_a_pair_is_compared_once_under_each_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int, float | None]] = []

    def counted(a: Track, b: Track, hint: float | None = None) -> Fit | None:
        compared.append((a.number, b.number, hint))
        return fit_pair(a, b, hint)

    monkeypatch.setattr(clusters, "fit_pair", counted)
    cluster([replace(each, host=0) for each in recorded(1, 3)])
    assert len(compared) == len(set(compared)) > 3


def test_two_groups_fall_apart() -> None:
    groups = [recorded(seed, 2) for seed in (1, 2)]
    tracks = [track(2 * g + t.number, t.start, t.end) for g, group in enumerate(groups) for t in group]
    assert sorted(sorted(each.shift) for each in cluster(tracks)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [0.0, 777_000.0])
def test_three_collectives_do_not_unite_groups_whose_clocks_are_unknown(seed: int, offset: float) -> None:
    """Two stages of a pipeline have as many all-reduces, as regular as each other."""
    draw = np.random.default_rng(seed)
    tracks = []
    for stage in range(2):
        end = np.arange(1, 4) * 5e6 + draw.normal(0, 2_000, 3) + stage * (offset + 9e5)
        for member in range(2):
            start = end - draw.uniform(5e4, 3e5, 3)
            tracks.append(track(2 * stage + member, start, end + draw.uniform(0, 1_500, 3)))
    for united in cluster(tracks, lone=False):
        assert sorted(united.shift) in ([0, 1], [2, 3])
    on_hosts = [replace(each, host=each.rank // 2) for each in tracks]
    assert sorted(sorted(each.shift) for each in cluster(on_hosts, lone=False)) == [[0, 1], [2, 3]]


def test_a_host_shares_a_clock_unless_that_is_contradicted() -> None:
    whole = recorded(7, 3, count=12)
    shared = [replace(each, host=0) for each in whole]
    assert len(cluster(shared)) == 1
    skewed = [replace(cut(each, 0, 3e6 * each.rank), host=0) for each in whole]
    (found,) = cluster(skewed)
    assert set(found.shift.values()) == {0}


def sequence(number: int, rank: int, way: int, start: np.ndarray, end: np.ndarray) -> Track:
    same = np.zeros(len(start), np.int64)
    return Track(number, rank, same, start, end, same, same == 0, 0, certain=False, pairwise=True, way=way)


def transfers(seed: int, offset: float = 0.0, late_ns: float = 0.0, count: int = 20) -> list[Track]:
    """Return a send of rank 0 and its receive on rank 1, whose clock is `offset` ahead, that ends `late_ns` later."""
    draw = np.random.default_rng(seed)
    ends = np.cumsum(draw.uniform(400_000, 900_000, count))
    starts = ends[:, None] - draw.uniform(20_000, 300_000, (count, 2))
    return [sequence(0, 0, 1, starts[:, 0], ends), sequence(1, 1, -1, starts[:, 1] + offset, ends + late_ns + offset)]


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
