from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import initial
from htagraph.whatif.links import fitted, link_share, transfers
from tests.whatif.changes.made import Piece, made

SIZES = (1000, 4000, 1000)  # bytes: two ranks reduce them, so that a link carries 2 (2 - 1) / 2 of each


def reducing(durations: tuple[int, int, int], sizes: tuple[int, int, int] = SIZES) -> DependencyGraph:
    pieces = [Piece("nccl", 7, ns, rank=rank, collective=i) for rank in (0, 1) for i, ns in enumerate(durations)]
    graph = made(pieces)
    matches = graph.matches
    assert matches is not None
    same = ("all",) * matches.count
    return graph.replace(matches=replace(matches, bytes=np.array(sizes * 2), group=same, size=np.full(3, 2, np.int32)))


def _transfers(graph: DependencyGraph, lag: np.ndarray) -> list[int]:
    return lag[transfers(initial(graph)).edges].tolist()


def test_latency_and_bandwidth_are_fitted() -> None:
    graph = reducing((150, 300, 150))  # 100 ns + 0.05 ns per byte
    found = transfers(initial(graph))
    (line,) = fitted(found, graph.edges.lag[found.edges].astype(np.float64))
    assert line is not None
    assert line == pytest.approx((100, 0.05))


def test_what_is_not_given_is_as_measured() -> None:
    graph = reducing((150, 300, 150))
    wide = hg.what_if(graph).network(bandwidth_gb_s=100).state  # 0.01 ns per byte
    assert sorted(set(_transfers(graph, wide.lag))) == [110, 140]
    quick = hg.what_if(graph).network(latency_us=0.02).state
    assert sorted(set(_transfers(graph, quick.lag))) == [70, 220]


def test_how_much_a_transfer_differs_from_others_of_its_size_stays() -> None:
    graph = reducing((100, 400, 200))
    lag = hg.what_if(graph).network(latency_us=0, bandwidth_gb_s=10).state.lag
    first, *_, third = _transfers(graph, lag)  # one after the other, each on both ranks
    assert third == pytest.approx(2 * first, rel=0.02)


def test_one_size_needs_both_numbers() -> None:
    graph = reducing((150, 151, 149), (1000, 1000, 1000))
    with pytest.raises(SelectionError, match="give both"):
        hg.what_if(graph).network(bandwidth_gb_s=100)
    lag = hg.what_if(graph).network(latency_us=1, bandwidth_gb_s=1).state.lag
    assert _transfers(graph, lag) == pytest.approx([2000] * 6, rel=0.02)


def test_transfers_of_unknown_size_are_noted() -> None:
    outcome = hg.what_if(reducing((150, 300, 150), (1000, 4000, -1))).network(latency_us=0, bandwidth_gb_s=10).run()
    assert "2 transfers of unknown size" in outcome.notes[0]


def test_a_ring_carries_its_share() -> None:
    assert float(link_share("all_reduce", 4)) == 1.5
    assert float(link_share("all_gather", 4)) == 0.75
    assert float(link_share("broadcast", 4)) == 1
    assert float(link_share("barrier", 4)) == 0
