"""Whom a send on a host goes to, by the groups that the header lists."""

from __future__ import annotations

from tests.host_jobs import host_job, transfer
from tests.strategies import Json


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
