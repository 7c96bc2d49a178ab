"""Test `whatif.fixed_parts`: what of a transfer no network's rate changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.fixed_parts import fixed_parts, line_through
from tests.whatif.changes.made import Piece, made

US = 1000


def job(durations: list[int], sizes: list[int], *, group: tuple[str, ...] = ()) -> DependencyGraph:
    """Return two ranks that all-reduce messages of these bytes in these ns."""
    graph = made([Piece("nccl", 7, ns, rank=rank, collective=i) for rank in (0, 1) for i, ns in enumerate(durations)])
    matches = graph.matches
    assert matches is not None
    known = replace(
        matches, bytes=np.array(sizes * 2), group=group or ("all",) * len(sizes),
        size=np.full(len(sizes), 2, np.int32),
    )  # fmt: skip
    return graph.replace(matches=known)


def of_transfers(graph: DependencyGraph) -> list[set[int]]:
    """Return the least, usual and most fixed parts of the transfers, ns."""
    assert graph.matches is not None
    own = np.isin(graph.edges.activity, graph.matches.activity) & (graph.edges.lag > 100)
    return [set(np.rint(part[own]).astype(int).tolist()) for part in fixed_parts(graph)]


@given(
    st.integers(0, 200 * US), st.integers(1, 100),
    st.lists(st.integers(1, 1000), min_size=2, max_size=6, unique=True),
)  # fmt: skip
def test_sizes_show_the_fixed_part(fixed: int, picos: int, sizes: list[int]) -> None:
    """A line is found again, and nothing is said where sizes are nearly alike."""
    moved = np.repeat(np.array(sizes, np.float64) * 10_000, 2)
    lag = fixed + moved * picos / 1000
    line = line_through(moved, lag, np.arange(len(moved)))
    if max(sizes) < 1.5 * min(sizes):
        assert line is None
    else:
        assert line is not None
        assert (line.fixed, line.per_byte) == pytest.approx((fixed, picos / 1000), rel=1e-6, abs=1e-3)


def test_what_sizes_show_counts_and_one_size_leaves_it_open() -> None:
    shown = job([100 * US, 150 * US, 100 * US, 150 * US], [1 << 20, 2 << 20] * 2)
    assert [max(part) for part in of_transfers(shown)] == pytest.approx([50 * US] * 3, abs=10)
    assert of_transfers(job([100 * US] * 4, [1 << 20] * 4)) == [{0}, {0}, {72 * US}]
    assert of_transfers(job([10 * US] * 4, [1 << 20] * 4)) == [{0}, {0}, {10 * US}], "never more than the transfer"


def test_sizes_that_scatter_show_nothing() -> None:
    scattered = job([1000 * US, 3000 * US, 9000 * US, 4000 * US], [1 << 20, 2 << 20] * 2)
    assert of_transfers(scattered)[1:] == [{0}, {72 * US}]


def test_groups_of_one_host_have_the_same_links() -> None:
    graph = job([100 * US, 150 * US] * 2, [1 << 20, 2 << 20] * 2, group=("a", "b") * 2)
    assert of_transfers(graph)[1] == {0}, "the hosts are not known"


def test_a_job_without_transfers_has_no_fixed_parts() -> None:
    assert not np.concatenate(fixed_parts(made([Piece("gemm", 7, 7)]))).any()


def of_hosts(ops: list[str], durations: list[int], sizes: list[int]) -> list[set[int]]:
    """Return the least, usual and most fixed parts of the first operation's collectives of host threads, ns."""
    graph = job(durations, sizes)
    matches = graph.matches
    assert matches is not None
    kind = graph.activities.kind.copy()
    kind[matches.activity] = ActivityKind.HOST_COMMUNICATION
    graph = graph.replace(matches=replace(matches, op=tuple(ops)), activities=replace(graph.activities, kind=kind))
    first = np.array([op == ops[0] for op in ops])[matches.collective]
    edges = np.isin(graph.edges.activity, matches.activity[first]) & (graph.edges.lag > 100)
    return [set(np.rint(values[edges]).astype(int).tolist()) for values in fixed_parts(graph)]


def test_an_operation_of_one_size_has_what_a_barrier_shows() -> None:
    """A collective of 5 ms has 60 µs of latency by the barrier, between half and twice as much by its turns."""
    shown = of_hosts(["all_reduce", "barrier"] * 3, [5000 * US, 60 * US] * 3, [1 << 20, 0] * 3)
    assert [max(values) for values in shown] == pytest.approx([30 * US, 60 * US, 120 * US], rel=0.02)
    alone = of_hosts(["all_reduce"] * 3, [5000 * US] * 3, [1 << 20] * 3)
    assert [max(values) for values in alone] == [75 * US, 150 * US, 300 * US]


def test_an_operation_of_one_size_has_what_sizes_of_another_show() -> None:
    ops, times = ["all_gather", "all_reduce", "all_reduce"] * 2, [5000 * US, 100 * US, 160 * US] * 2
    shown = of_hosts(ops, times, [1 << 20, 1 << 20, 2 << 20] * 2)
    assert max(shown[1]) == pytest.approx(40 * US, abs=100)


def test_barriers_that_scatter_show_nothing() -> None:
    scattered = of_hosts(
        ["all_reduce", "barrier"] * 3, [5000 * US, 60 * US, 5000 * US, 60 * US, 5000 * US, 9000 * US], [1 << 20, 0] * 3
    )
    assert max(scattered[1]) == 150 * US
