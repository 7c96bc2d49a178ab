"""Which ranks are compared: replicas and shards with each other, stages of a pipeline with the same stage elsewhere."""

from __future__ import annotations

import pytest

from htagraph.queries.rank_roles import rank_roles
from htagraph.simulate import Job
from tests.analyses.test_stragglers import run
from tests.strategies import load, op


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
