"""Whom a send on a host goes to, by the groups that the header lists."""

from __future__ import annotations

from collections import Counter

import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from tests.host_jobs import host_job, tensor_args, transfer
from tests.strategies import Json, annotation, op, step


def test_the_group_of_a_peer_is_the_one_in_which_it_has_a_counterpart() -> None:
    """Ranks 0 and 2, 1 and 3 are pipelines; peer 1 of rank 0 is rank 2 there, and rank 1 in the group of all."""
    groups = [[0, 1, 2, 3], [0, 2], [1, 3]]
    job: dict[int, list[Json]] = {rank: [] for rank in range(4)}
    for low, high in ((0, 2), (1, 3)):
        for i in range(3):
            at = 1_000 * i
            job[low] += [*transfer("send", 1, at + 100, at + 110), *transfer("recv", 1, at + 500, at + 610)]
            job[high] += [*transfer("recv", 0, at + 50, at + 115), *transfer("send", 0, at + 600, at + 605)]
    graph = host_job(job, groups)
    assert graph.matches is not None
    assert sorted(set(graph.matches.group)) == ["0→2", "1→3", "2→0", "3→1"]
    assert graph.matches.count == 12


def test_without_recorded_inputs_a_job_of_two_needs_no_names() -> None:
    job: dict[int, list[Json]] = {0: [], 1: []}
    for i in range(3):
        job[0] += transfer("send", 1, 100 + 1_000 * i, 110 + 1_000 * i, shapes=False)
        job[1] += transfer("recv", 0, 50 + 1_000 * i, 150 + 1_000 * i, shapes=False)
    graph = host_job(job)
    assert graph.matches is not None
    assert graph.matches.count == 3


def test_who_sent_to_anyone_shows_in_ends_and_each_rank_counts_its_own_steps() -> None:
    job: dict[int, list[Json]] = {0: [], 1: [], 2: []}
    for i in range(8):
        at, asks = 1_000 * i, op("c10d::recv_any_source_", 1_000 * i + 99, 0.2, **tensor_args(16, 0))
        job[0] += [step(i // 2, at, 2_000)] * (1 - i % 2) + [asks, annotation("gloo:recvAnySource", at + 99.1, 100)]
        job[0] += transfer("send", 1 + i % 2, at + 500, at + 510)
        job[1 + i % 2] += [step(i // 2 + 3, at, 900), *transfer("send", 0, at + 50, at + 205)]
        job[1 + i % 2] += transfer("recv", 0, at + 210, at + 515)
    matches = host_job(job).matches
    assert matches is not None
    assert Counter(matches.group) == {"0→1": 4, "0→2": 4, "1→0": 4, "2→0": 4}


_EVERYBODY, _ROWS, _COLUMNS = (0, 1, 2, 3), ((0, 1), (2, 3)), ((0, 2), (1, 3))
_STEPS = 5


def reduced(start: float, end: float, count: int, thread: int) -> list[Json]:
    """Return an all-reduce of `count` elements that is asked for at `start` and is over at `end`, µs."""
    work = annotation("gloo:all_reduce", start + 10, end - start - 10, tid=thread)
    work["args"] = {"Input Dims": [[count]], "Input type": ["float"]}
    return [op("c10d::allreduce_", start, 5, **tensor_args(count)), work]


def grid(late: int, begins: int = 0) -> DependencyGraph:
    """Return a job whose ranks reduce 16 elements with their row and then 64 with their column; rank 3 is `late` µs.

    Row 0 comes 300 µs before row 1. Rank 0 is recorded from step `begins` on.
    """
    job: dict[int, list[Json]] = {rank: [] for rank in _EVERYBODY}
    for number in range(_STEPS):
        at = 10_000 * number
        for rank in _EVERYBODY:
            row = at + 300 * (rank // 2) + 37 * number
            arrival, slow = row + 200, late * (rank == 3)
            over = max(at + 37 * number + 500, at + 37 * number + 500 + late * (rank % 2)) + 1_000
            if rank or number >= begins:
                job[rank] += [step(number, at, 9_000), *reduced(row, row + 100, 16, 20)]
                job[rank] += reduced(arrival + slow, over, 64, 30)
    return host_job(job, [_EVERYBODY, *_ROWS, *_COLUMNS])


def found(graph: DependencyGraph) -> dict[tuple[int, ...], int]:
    """Return how many collectives the ranks have together, by ranks."""
    matches, rank = graph.matches, graph.activities.rank
    assert matches is not None
    members = (matches.activity[matches.collective == number] for number in range(matches.count))
    return Counter(tuple(sorted(rank[rows].tolist())) for rows in members)


@pytest.mark.parametrize("late", [0, 4_000])
def test_calls_are_of_the_groups_that_time_and_threads_leave(late: int) -> None:
    graph = grid(late)
    assert found(graph) == dict.fromkeys((*_ROWS, *_COLUMNS), _STEPS)
    assert hg.replay(graph).max_error_ns == 0


def test_a_recording_that_begins_later_leaves_the_groups_as_they_are() -> None:
    groups = found(grid(4_000, begins=2))
    assert groups[2, 3] == groups[1, 3] == _STEPS
    assert groups[0, 1] == groups[0, 2] == _STEPS - 2
