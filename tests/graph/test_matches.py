"""Who waits for whom: JOINs of barriers, of what has a root, and of what has none, in jobs whose answer is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities
from htagraph.graph.clocks import Clock
from htagraph.graph.construction.matching.match import match
from htagraph.graph.matches import Matches, with_joins
from tests.graph.construction.matching.test_match import made
from tests.host_jobs import host_job, tensor_args
from tests.strategies import OTHER, Json, annotation, op

RANKS, COUNT, TRANSFER_NS = 3, 20, 40_000
KERNEL = "ncclDevKernel_{}_Sum_f32_RING_LL(ncclDevComm*)"


def job(operation: str, awaited: str, root: int = 1) -> tuple[Activities, Matches, np.ndarray]:
    """Return the activities with JOINs, the matches, and the arrivals by (collective, rank).

    Args:
        operation: as in the names of NCCL's kernels.
        awaited: ``all``, ``root`` (each end waits for the root's arrival) or ``by root`` (the root's end for all).
        root: the rank.
    """
    draw = np.random.default_rng(5)
    arrival = 3_000_000 * np.arange(COUNT)[:, None] + draw.integers(0, 500_000, (COUNT, RANKS))
    last = arrival.copy()
    if awaited == "all":
        last[:] = arrival.max(axis=1)[:, None]
    elif awaited == "root":
        last = np.maximum(arrival, arrival[:, [root]])
    else:
        last[:, root] = arrival.max(axis=1)
    end = last + TRANSFER_NS + draw.integers(0, 1_000, (COUNT, RANKS))
    acts, _ = made({r: [list(zip(arrival[:, r].tolist(), end[:, r].tolist(), strict=True))] for r in range(RANKS)})
    matching = match(acts, (KERNEL.format(operation),), {})
    return (*with_joins(acts, matching, [Clock(rank) for rank in range(RANKS)]), arrival)


def awaited_moment(acts: Activities, matches: Matches, member: int) -> int:
    """Return the moment of the JOIN that a member waited for, -1 for none."""
    join = int(matches.join[member])
    return int(acts.start[join]) if join >= 0 else -1


@pytest.mark.parametrize("operation", ["AllReduce", "AllGather", "ReduceScatter"])
def test_every_end_of_a_barrier_waits_for_the_last_arrival(operation: str) -> None:
    acts, matches, arrival = job(operation, "all")
    assert matches.count == COUNT
    assert (acts.kind == ActivityKind.JOIN).sum() == COUNT
    for member, collective in enumerate(matches.collective.tolist()):
        assert awaited_moment(acts, matches, member) == arrival[collective].max()
        assert acts.start[matches.feeds[member]] == arrival[collective].max()


@pytest.mark.parametrize("root", [0, 1, 2])
def test_every_end_of_a_broadcast_waits_for_the_root_alone(root: int) -> None:
    acts, matches, arrival = job("Broadcast", "root", root)
    rank = acts.rank[matches.activity]
    for member, collective in enumerate(matches.collective.tolist()):
        assert awaited_moment(acts, matches, member) == arrival[collective, root]
        assert (matches.feeds[member] >= 0) == (rank[member] == root), "nobody waits for the others"


@pytest.mark.parametrize("root", [0, 1, 2])
def test_only_the_root_of_a_reduction_waits_for_all(root: int) -> None:
    acts, matches, arrival = job("Reduce", "by root", root)
    rank = acts.rank[matches.activity]
    for member, collective in enumerate(matches.collective.tolist()):
        expected = arrival[collective].max() if rank[member] == root else -1
        assert awaited_moment(acts, matches, member) == expected
        assert matches.feeds[member] >= 0


def test_a_broadcast_in_which_everybody_waits_is_like_a_barrier() -> None:
    acts, matches, arrival = job("Broadcast", "all")
    for member, collective in enumerate(matches.collective.tolist()):
        assert awaited_moment(acts, matches, member) == arrival[collective].max()


def test_members_come_by_collective_and_arrival() -> None:
    acts, matches, _ = job("AllReduce", "all")
    order = np.lexsort((acts.start[matches.activity], matches.collective))
    assert order.tolist() == list(range(len(matches.activity)))
    assert set(matches.key) == {"lane+order"}


def test_one_rank_alone_has_no_matches() -> None:
    acts, _ = made({0: [[(0, 1), (5, 9)]]})
    same, matches = with_joins(acts, match(acts, (KERNEL.format("AllReduce"),), {}), [])
    assert (len(same), matches.count, len(matches.activity)) == (2, 0, 0)


def test_a_root_that_hands_over_when_asked_waits_for_its_receivers() -> None:
    """Each rank is the root of a broadcast in each step, and rank 1 comes late, by a time that differs."""
    job: dict[int, list[Json]] = {0: [], 1: []}
    late = [8_000 + 1_700 * (number * number % 7) for number in range(10)]
    for number, rank, root in product(range(10), range(2), range(2)):
        start = 30_000 * number + 40 * root + late[number] * rank
        over = start + 500 if rank else start + late[number] + 600
        work = annotation("gloo:broadcast", start, over - start, tid=OTHER + root)
        work["args"] = {"Input Dims": [[64]], "Input type": ["float"]}
        job[rank] += [op("c10d::broadcast_", start, 5, **tensor_args(64, root, 0, "True", -1)), work]
    graph = host_job(job)
    assert [clock.gauge for clock in graph.clocks] == [0, 0], "on the clock of their host"
    told = hg.collectives(graph).query("rank == 0")
    assert told["wait_us"].tolist() == np.repeat(late, 2).tolist(), (
        "as the root of one, and as the receiver of the other"
    )
