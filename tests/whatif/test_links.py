"""How transfers share links: what the recording shows, and what follows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import bus_factor
from htagraph.queries.replay import predict
from htagraph.queries.weights import initial
from htagraph.whatif.links import (
    Sharing,
    _least_varied,
    assumed,
    fitted,
    likely_sharing,
    link_share,
    link_transfers,
    places_of_links,
    transfers,
    with_shared_link,
)
from tests.strategies import COMMUNICATE, kernel, launch, load, op
from tests.whatif.changes.made import Piece, jobs, made


def in_rows(lengths: list[tuple[int, int, int]]) -> DependencyGraph:
    """Return a job with rows of two collectives; per row: when the second begins, and the lengths of both."""
    pieces: list[Piece] = []
    for rank in (0, 1):
        before: tuple[int, ...] = ()
        for row, (later, first, second) in enumerate(lengths):
            at = len(pieces)
            pieces += [
                Piece("nccl", 7, first, waits=before, rank=rank, collective=4 * row),
                Piece("gemm", 9, later, waits=before, rank=rank),
                Piece("nccl", 8, second, waits=(at + 1,), rank=rank, collective=4 * row + 2),
            ]
            before = (at, at + 2)
    graph = made(pieces)
    assert graph.matches is not None
    sized = replace(graph.matches, bytes=np.full(len(graph.matches.activity), 1 << 20))
    return graph.replace(matches=sized)


@pytest.mark.parametrize("sharing", list(Sharing))
@given(jobs(2).map(made))
@settings(max_examples=10)
def test_a_job_as_recorded_stays_as_it_is(sharing: Sharing, graph: DependencyGraph) -> None:
    state = with_shared_link(initial(graph), sharing)
    assert np.array_equal(predict(graph, state.lag), graph.time)


WORK = 10_000
LATER = [2000 + 500 * n for n in range(10)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(later, 2 * WORK - later, 2 * WORK - later) for later in LATER], Sharing.EQUAL),
        ([(later, WORK, 2 * WORK - later) for later in LATER], Sharing.IN_TURN),
        ([(later, WORK, WORK) for later in LATER], Sharing.NONE),
    ],
)
def test_the_recording_shows_how_transfers_share_a_link(rows: list[tuple[int, int, int]], expected: Sharing) -> None:
    graph = in_rows(rows)
    assert likely_sharing(graph) == (expected, True)
    assert assumed(initial(graph)).others == ()


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(2 * WORK, WORK, Sharing.NONE), (3 * WORK, 2 * WORK, Sharing.EQUAL)]
)
def test_where_all_overlap_alike_the_time_per_byte_of_two_sizes_shows_it(
    first: int, second: int, expected: Sharing
) -> None:
    graph = in_rows([(1000, first, second)] * 6)
    assert graph.matches is not None
    unknown = np.full(len(graph.matches.activity), -1)
    assert likely_sharing(graph.replace(matches=replace(graph.matches, bytes=unknown))) == (Sharing.NONE, False)
    size = np.where(np.isin(graph.activities.duration[graph.matches.activity], [first]), 2 << 20, 1 << 20)
    assert likely_sharing(graph.replace(matches=replace(graph.matches, bytes=size))) == (expected, True)


@pytest.mark.parametrize(("smaller", "expected"), [(1.0, Sharing.EQUAL), (1.2, None)])
def test_where_the_medians_of_deviations_are_alike_their_means_show_it(
    smaller: float, expected: Sharing | None
) -> None:
    alone = np.array([-0.5, -0.14, -0.14, 0, 0.14, 0.14, 0.5])
    logs = {Sharing.NONE: alone, Sharing.EQUAL: smaller * np.clip(alone, -0.14, 0.14), Sharing.IN_TURN: 3 * alone}
    transfers = SimpleNamespace(alone=lambda sharing: WORK * np.exp(logs[sharing]))
    every = np.ones(len(alone), np.bool_)
    shown = _least_varied(cast("Any", transfers), np.zeros(len(alone)), np.ones(len(alone)), every, every)
    assert shown is expected, "unless the medians say otherwise"


def test_where_nothing_overlaps_both_ways_are_possible() -> None:
    graph = made([Piece("nccl", 7, 100, rank=rank, collective=number) for rank in (0, 1) for number in (0, 1, 2)])
    assert likely_sharing(graph) == (Sharing.NONE, False)
    links = assumed(initial(graph))
    assert (links.sharing, links.others) == (Sharing.NONE, (Sharing.EQUAL,))
    assert links.shared is links.state
    assert assumed(replace(initial(graph), shared_link=True)).sharing is Sharing.EQUAL


def test_transfers_that_come_apart_are_faster_also_where_sharing_is_only_likely() -> None:
    graph = in_rows([(2000, WORK, WORK)] * 2)
    apart = initial(graph).lag.copy()
    apart[graph.edges.activity == graph.select(name="gemm").activities[0]] = 10 * WORK
    state = replace(initial(graph), lag=apart)
    assert (with_shared_link(state, Sharing.EQUAL).lag < state.lag).any()


def test_a_job_without_collectives_shares_nothing() -> None:
    assert likely_sharing(made([Piece("gemm", 7, 10)])) == (Sharing.NONE, True)


def test_of_two_transfers_that_share_a_link_equally_each_would_take_less_alone() -> None:
    graph = in_rows([(2000, 18_000, 18_000)])
    transfers = link_transfers(graph).get(ActivityKind.COMMUNICATION)
    assert transfers is not None
    assert transfers.overlapped
    assert transfers.alone(Sharing.NONE).tolist() == transfers.lag.tolist()
    # 2 µs alone, 16 µs with half of the link, and the other one the same the other way round
    assert transfers.alone(Sharing.EQUAL) == pytest.approx([10_000] * 4, rel=1e-3)
    later = transfers.start + np.where(transfers.transfer == transfers.transfer[0], 0, 50_000)
    assert not transfers.overlap(later, transfers.lag)


def test_fewer_than_two_transfers_share_nothing() -> None:
    one = made([Piece("nccl", 7, 100, rank=rank, collective=0) for rank in (0, 1)])
    assert ActivityKind.COMMUNICATION not in link_transfers(one)
    assert not link_transfers(made([Piece("gemm", 7, 10)]))


def test_devices_have_a_link_each() -> None:
    graph = in_rows([(2000, 9_000, 9_000)])
    assert places_of_links(graph, ActivityKind.COMMUNICATION)[:2].tolist() == [0, 1]


OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")


def _job(durations: list[int], sizes: list[int]) -> DependencyGraph:
    """Return two ranks that all-reduce messages of these bytes in these ns, in one process group."""
    count = len(sizes)
    graph = made([Piece("nccl", 7, ns, rank=rank, collective=i) for rank in (0, 1) for i, ns in enumerate(durations)])
    matches = graph.matches
    assert matches is not None
    known = replace(
        matches, bytes=np.array(sizes * 2), group=("all",) * count, size=np.full(count, 2, np.int32)
    )  # fmt: skip
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
    with pytest.raises(SelectionError, match="this job has no transfers between ranks"):
        transfers(initial(load([op("a", 0, 10)])))
    with pytest.raises(SelectionError, match="scale_network"):
        transfers(initial(load([launch(0, 1, 1), kernel(COMMUNICATE, 3, 5, 1)])))
