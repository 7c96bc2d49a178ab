"""Operators that try kernels out: hand-made choices that no name tells, and what looks like one but is none."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.start_up import KINDS
from htagraph.queries.start_up import start_up_by_rank, trials_of, without_start_up
from tests.strategies import Json, kernel, launch, load, op, runtime, step

TRIAL_US = 400
STEADY_US = 60


def convolution(at: int, call: int, trials: int, name: str = "aten::cudnn_convolution") -> tuple[list[Json], int]:
    """Return an operator that tries so many kernels and then runs one, and the time at which the operator ends."""
    events: list[Json] = []
    now = at + 5
    for trial in range(trials):
        events += [launch(now, 5, call + trial), kernel(f"candidate_{trial}", now + 10, TRIAL_US - 100, call + trial)]
        events += [
            runtime("cudaEventSynchronize", now + 10, TRIAL_US - 90),
            runtime("cudaEventElapsedTime", now + TRIAL_US - 8, 3),
        ]
        now += TRIAL_US
    events += [launch(now + 10, 5, call + trials), kernel("candidate_0", now + 20, 200, call + trials)]
    end = now + STEADY_US - 5
    return [op(name, at, end - at), *events], end


def job(trials: list[int], apart_us: int = 300, *, steps: bool = False, processes: int = 1) -> DependencyGraph:
    """Return a job of convolutions, by how many kernels each tries out."""
    events: list[Json] = []
    now = 0
    for number, count in enumerate(trials):
        more, end = convolution(now, 100 * number + 1, count)
        if steps:
            events.append(step(number, now, end - now + apart_us - 10))
        events += more
        now = end + apart_us
    return load(dict.fromkeys(range(processes), events))


def tuned_us(graph: DependencyGraph, rank: int = 0) -> float:
    rows = graph.start_up.of(graph.activities.rank[graph.start_up.activity] == rank)
    return float(rows.time[rows.kind == KINDS.index("tuning")].sum()) / 1000


def test_what_a_host_does_until_the_kernel_is_chosen_is_start_up() -> None:
    graph = job([4, 0, 3, 0, 0, 0])
    last_readings_us = 5 + 4 * TRIAL_US - 5 + 5 + 3 * TRIAL_US - 5
    assert tuned_us(graph) == pytest.approx(last_readings_us, rel=0.01)
    assert len(trials_of(graph)) == 7


def test_the_job_without_tuning_is_the_job_that_tunes_nothing() -> None:
    graph, steady = job([4, 0, 3, 0, 0, 0]), job([0] * 6)
    warm = Results(graph).warm_graph
    lasts, expected = ((each.time.max() - each.time.min()) / 1000 for each in (warm, steady))
    assert lasts == pytest.approx(expected, rel=0.05)
    without = without_start_up(graph, graph.start_up.activity)
    assert without.lag[graph.edges.activity == trials_of(graph)[0]].sum() == 0
    said = " ".join(claim.says for claim in claims_of(Results(graph)))
    assert "start_up" in said
    assert "blocking" not in said


def test_what_recurs_is_none() -> None:
    assert tuned_us(job([3] * 5, steps=True)) == 0
    assert tuned_us(job([3, 0, 0, 0, 0], steps=True)) > 0


@pytest.mark.parametrize("trials", [[1, 0, 0], [0, 0, 0]])
def test_one_reading_chooses_nothing(trials: list[int]) -> None:
    assert start_up_by_rank(job(trials)) == {}


def test_a_user_who_times_kernels_outside_of_operators_is_no_library() -> None:
    events, _ = convolution(0, 1, 4)
    assert not len(load([event for event in events if event["cat"] != "cpu_op"]).start_up)


def test_each_rank_has_its_own_tuning() -> None:
    graph = job([4, 0, 0], processes=3)
    assert {rank: tuned_us(graph, rank) for rank in range(3)} == dict.fromkeys(range(3), tuned_us(job([4, 0, 0])))
    assert hg.replay(graph).max_error_ns == 0
