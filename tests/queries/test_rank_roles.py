"""Which ranks are compared: replicas and shards with each other, stages of a pipeline with the same stage elsewhere."""

from __future__ import annotations

import pytest

from htagraph.queries.rank_roles import rank_roles
from htagraph.simulate import Job
from tests.analyses.test_stragglers import run
from tests.host_jobs import host_job, transfer
from tests.strategies import Json, load, op, step


@pytest.mark.parametrize(
    ("job", "roles"),
    [
        (Job(ranks=4, steps=2, layers=2), [0, 0, 0, 0]),
        (Job(ranks=4, steps=2, layers=2, tp=2), [0, 0, 0, 0]),
        (Job(ranks=4, steps=2, layers=2, pp=2), [0, 0, 1, 1]),
        (Job(ranks=2, steps=2, layers=2, pp=2), [0, 1]),
    ],
)
def test_ranks_of_one_stage_have_one_role(job: Job, roles: list[int]) -> None:
    graph = run(job)
    found, _ = rank_roles(graph)
    sent = [(a, b) for a in range(job.ranks) for b in range(job.ranks) if roles[a] == roles[b]]
    assert sent == [(a, b) for a in range(job.ranks) for b in range(job.ranks) if found[a] == found[b]]


def test_more_work_of_the_same_is_no_other_role_but_another_program_is() -> None:
    train = [op(name, 10 * i, 5) for i, name in enumerate(["aten::mm", "aten::relu"] * 10)]
    extra = [op("aten::mm", 1000 + 10 * i, 5) for i in range(40)]
    serve = [op(f"serve::{i}", 10 * i, 5) for i in range(20)]
    found, _ = rank_roles(load({0: train, 1: train + extra, 2: train, 3: serve}))
    assert found[0] == found[1] == found[2] != found[3]
    found, _ = rank_roles(load({0: train, 1: train + extra}))
    assert found[0] == found[1]


def passed_on(ranks: int, *, round_trip: bool, lost: int = 0) -> dict[int, list[Json]]:
    """Return a job of three steps in which each rank sends to the next one, the last one to the first in a round trip.

    Args:
        ranks: how many.
        round_trip: True for a ring, False for the stages of a pipeline.
        lost: how many steps the recording of rank 1 begins late.
    """
    events: dict[int, list[Json]] = {rank: [] for rank in range(ranks)}
    for number in range(3):
        begin = 1_000 * number
        for rank, each in events.items():
            if rank == 1 and number < lost:
                continue
            each += [step(number, begin, 900), op("aten::mm", begin + 10, 50)]
            if round_trip or rank:
                each += transfer("recv", (rank - 1) % ranks, begin + 300, begin + 400)
            if round_trip or rank < ranks - 1:
                each += transfer("send", (rank + 1) % ranks, begin + 100, begin + 110)
    return events


@pytest.mark.parametrize("lost", [0, 1])
def test_ranks_that_send_in_a_ring_do_the_same_work(lost: int) -> None:
    found, _ = rank_roles(host_job(passed_on(4, round_trip=True, lost=lost)))
    assert len(set(found.tolist())) == 1


def test_ranks_that_send_in_a_row_are_stages() -> None:
    found, pipeline = rank_roles(host_job(passed_on(4, round_trip=False)))
    assert len(set(found.tolist())) == 4
    assert len(set(pipeline.tolist())) == 1
