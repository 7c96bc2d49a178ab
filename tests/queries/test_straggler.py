"""Who is the straggler: what decides it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import htagraph.queries.straggler as module
from htagraph.core.naming import BETWEEN_OPERATORS
from htagraph.queries.blame import CAUSES, blame_of, chains_of
from htagraph.queries.rank_speed import slow_ranks
from htagraph.queries.straggler import (
    Difference,
    alone_work,
    charges_of,
    largest_upstream,
    rank_differences,
    slow_work,
    straggler_among,
    straggler_of,
)
from htagraph.simulate import Job, SlowRank
from tests.analyses.test_stragglers import DEVICE, STAGES, clear, run
from tests.strategies import Json, annotation, load, op, step

CLEAR = {"kernels": 2, "host": 1, "no slow rank": None}
"""Jobs without doubt: one rank 10 % slower than the others, or none."""


@pytest.mark.parametrize("factor", [0.5, 2])
def test_a_clear_conclusion_does_not_depend_on_the_least_effect(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_STEP_SHARE", factor * module.MIN_STEP_SHARE)
    assert {case: straggler_of(clear(case))[0] for case in CLEAR} == CLEAR


BESIDE = {
    "5 % slower": (DEVICE.model_copy(update={"steps": 5}), (SlowRank(rank=2, factor=1.05),), (2, 2, 2)),
    "hardly slower": (
        DEVICE.model_copy(update={"jitter": 0.0}), (SlowRank(rank=2, factor=1.25, name="*layer_norm*"),), (2, 2, None)
    ),
    "noise alone": (DEVICE.model_copy(update={"jitter": 0.25, "ranks": 8}), (), (None, None, None)),
    "two slow ranks": (DEVICE, (SlowRank(rank=1, factor=1.2), SlowRank(rank=2, factor=1.2)), (None, None, None)),
}  # fmt: skip
"""Jobs beside a threshold: job, slow ranks, the straggler with the least effect halved, as it is, and doubled."""


@pytest.mark.parametrize("case", BESIDE)
def test_which_conclusions_the_least_effect_decides(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job, slow, expected = BESIDE[case]
    graph = run(job.model_copy(update={"slow_ranks": slow}))
    value, answers = module.MIN_STEP_SHARE, []
    for factor in (0.5, 1, 2):
        monkeypatch.setattr(module, "MIN_STEP_SHARE", value * factor)
        answers.append(straggler_of(graph)[0])
    assert tuple(answers) == expected


def test_a_rank_that_is_charged_less_than_another_is_not_named() -> None:
    graph = clear("kernels")
    slow, blame = slow_ranks(graph), blame_of(graph, chains_of(graph))
    assert straggler_among(graph, slow, blame)[0] == 2
    other = replace(blame, rank=np.where(blame.rank == 2, 0, blame.rank))
    rank, _, most = straggler_among(graph, slow, other)
    assert (rank, most) == (None, 0)
    assert charges_of(graph, other)[:, 1:].sum(axis=1).argmax() == 0


def test_a_slow_stage_is_named_if_its_speed_gains_whoever_is_charged_by_design() -> None:
    """The last stage of a pipeline is waited for less than the others, however slow it is."""
    slow = {"slow_ranks": (SlowRank(rank=3, factor=1.15),)}
    graph = run(STAGES.model_copy(update={"layers": 4, "steps": 4, "jitter": 0.01, **slow}))
    blame = blame_of(graph, chains_of(graph))
    assert charges_of(graph, blame).sum(axis=1).argmax() != 3
    assert straggler_of(graph)[0] == 3
    stage = slow_ranks(graph).stage
    assert stage is not None
    assert stage[0] == pytest.approx(1.15, abs=0.02)


def test_a_slow_kernel_is_compared_alone_and_is_upstream_of_the_charges() -> None:
    job = Job(ranks=4, steps=3, layers=3, seed=11, slow_ranks=(SlowRank(rank=0, factor=1.3, name="*gemm*"),))
    graph = run(job)
    chains = chains_of(graph)
    blame = blame_of(graph, chains)
    kernels = CAUSES.index("kernels")
    works = slow_work(graph, chains, blame, np.array([kernels, 0, 0, 0]))
    assert "gemm" in works[0].name
    assert works[0].slower == pytest.approx(0.3, abs=0.15)
    assert [work.name for work in works[1:]] == [""] * 3
    activity = largest_upstream(chains, blame)
    charged = activity[(blame.rank == 0) & (blame.cause == kernels)]
    assert (graph.activities.rank[charged] == 0).all()


def test_differences_are_totals_by_name_the_largest_first() -> None:
    """Rank 1 stalls once in `aten::cat`, writes a log that nobody else writes, and does `aten::mm` like the others."""
    events: dict[int, list[Json]] = {}
    for rank in range(3):
        slow = rank == 1
        events[rank] = [step(0, 0, 1000), op("aten::mm", 10, 40), op("aten::cat", 60, 20)]
        events[rank] += [op("aten::cat", 100, 220 if slow else 20), op("aten::mm", 400, 40)]
        events[rank] += [op("log", 500, 30)] if slow else []
    graph = load(events)
    own, peers = chains_of(graph).own, np.array([0, 2])
    first, second, *_ = rank_differences(graph, own, 1, peers, top=9)
    assert first == Difference("aten::cat", 240.0, 40.0, 2, 2, 220.0)
    assert first.more_us == 200.0
    assert second == Difference("log", 30.0, 0.0, 1, 0, 30.0)
    assert [each.name for each in rank_differences(graph, own, 0, np.array([2]))] == []
    logs = [annotation("log", at, 40) for at in (0, 50)] + [op("write", 10 * at, 5) for at in range(9)]
    alone = load({0: [op("aten::mm", 0, 9)], 1: [op("aten::mm", 100, 9), *logs], 2: [op("aten::mm", 0, 9)]})
    count = {each.name: each.count for each in rank_differences(alone, alone.own_time, 1, np.array([0, 2]), top=9)}
    assert count["log"] == 2, "the regions, not what is in them"
    assert [each.name for each in rank_differences(graph, own, 0, np.array([1]))] == [BETWEEN_OPERATORS]
    assert rank_differences(graph, own, 2, np.array([0, 1])) == [], "one of the others takes as long"
    assert [alone_work(graph, own, rank) for rank in range(3)] == [(0, 0.0), (1, 30.0), (0, 0.0)]
