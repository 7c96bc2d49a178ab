"""Transfers, their bytes on the link, and the latency and bandwidth that explain their times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import bus_factor
from htagraph.queries.weights import initial
from htagraph.whatif.transfers import fitted, link_share, transfers
from tests.strategies import load, op
from tests.whatif.changes.made import Piece, made

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")


def _job(durations: list[int], sizes: list[int]) -> DependencyGraph:
    """Return two ranks that all-reduce messages of these bytes in these ns, in one process group."""
    count = len(sizes)
    graph = made([Piece("nccl", 7, ns, rank=rank, collective=i) for rank in (0, 1) for i, ns in enumerate(durations)])
    matches = graph.matches
    assert matches is not None
    known = replace(matches, bytes=np.array(sizes * 2), group=("all",) * count, size=np.full(count, 2, np.int32))
    return graph.replace(matches=known)


@pytest.mark.parametrize("op_name", OPS)
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_links_share_is_nccls_bus_factor(op_name: str, ranks: int) -> None:
    assert float(link_share(op_name, ranks)) == pytest.approx(bus_factor(op_name, ranks))


def test_a_barrier_moves_no_bytes_and_a_group_of_one_none_by_ring() -> None:
    assert float(link_share("barrier", 8)) == 0
    assert [float(link_share(name, 1)) for name in OPS] == [0, 0, 0, 0, 1]


def test_each_member_of_each_collective_has_a_transfer() -> None:
    graph = _job([150, 300, 200], [1000, 4000, -1])
    found = transfers(initial(graph))
    assert sorted(found.collective.tolist()) == [0, 0, 1, 1, 2, 2]
    assert set(found.label.tolist()) == {0}
    moved = dict(zip(found.collective.tolist(), found.moved.tolist(), strict=True))
    assert moved == {0: 1000, 1: 4000, 2: -1}  # 2 (2 - 1) / 2 of each
    lags = dict(zip(found.collective.tolist(), graph.edges.lag[found.edges].tolist(), strict=True))
    assert lags == {0: 150, 1: 300, 2: 200}


@given(
    latency=st.integers(0, 10_000), picos=st.integers(1, 1000),
    sizes=st.lists(st.integers(1, 1000), min_size=2, max_size=6),
)  # fmt: skip
@settings(max_examples=60)
def test_a_line_is_found_again(latency: int, picos: int, sizes: list[int]) -> None:
    """Times of ``latency + bytes * picos / 1000`` ns give back both numbers where sizes differ enough."""
    sizes = [1000 * size for size in sizes]
    durations = [latency + size * picos // 1000 for size in sizes]
    found = transfers(initial(_job(durations, sizes)))
    lag = found.moved * picos / 1000 + latency
    (line,) = fitted(found, lag)
    if max(sizes) < 1.5 * min(sizes):
        assert line is None
    else:
        assert line is not None
        predicted = line[0] + found.moved * line[1]
        assert predicted == pytest.approx(lag, rel=1e-6)
        assert line == pytest.approx((latency, picos / 1000), rel=1e-5, abs=1e-3)


def test_a_time_that_falls_with_size_is_latency_alone() -> None:
    found = transfers(initial(_job([300, 150], [1000, 4000])))
    (line,) = fitted(found, np.where(found.moved == 1000, 300.0, 150.0))
    assert line == (225.0, 0.0)


def test_ranks_that_never_meet_have_no_transfers() -> None:
    with pytest.raises(SelectionError, match="scale_network"):
        transfers(initial(load([op("a", 0, 10)])))
