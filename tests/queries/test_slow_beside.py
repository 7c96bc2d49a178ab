"""Whether work is found to be slow beside what makes it slow, and beside nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.queries.slow_beside import slow_beside
from htagraph.simulate import Job, simulate
from tests.beside_jobs import GATHER, Step, job_of, kernels_beside_collectives
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, COPY, load

LEAST_NS = 100_000
ALTERNATING = [Step(is_slow=place % 2 > 0, copies_on=(0, 1) if place % 2 else ()) for place in range(10)]


def test_a_collective_is_slow_beside_copies() -> None:
    graph = load(job_of(ALTERNATING))
    (found,) = slow_beside(graph, LEAST_NS)
    assert (graph.names[found.name], graph.names[found.companion], found.op) == (GATHER, COPY, "all_gather")
    assert found.ratio == pytest.approx(3.0, rel=0.01)
    assert (len(found.slow), found.count) == (5, 10)
    assert found.slow_ns == pytest.approx(1_500_000, rel=0.01)
    assert found.fast_ns == pytest.approx(500_000, rel=0.01)


def test_a_copy_on_one_rank_slows_the_collective_on_both() -> None:
    graph = load(job_of([Step(each.is_slow, each.copies_on[:1]) for each in ALTERNATING]))
    (found,) = slow_beside(graph, LEAST_NS)
    assert len(found.slow) == 5


@pytest.mark.parametrize(
    "steps",
    [
        [Step(place % 2 > 0, (0, 1)) for place in range(10)],  # beside all
        [Step(place % 2 > 0) for place in range(10)],  # beside none
        [Step(place % 2 > 0, (0, 1) if place % 4 < 2 else ()) for place in range(12)],  # beside as many fast ones
        [Step(is_slow=False, copies_on=(0, 1) if place % 2 else ()) for place in range(10)],  # slows nothing down
        [Step(is_slow=False, late_us=1000 * (place % 2), copies_on=(0, 1) if place % 2 else ()) for place in range(10)],
        [Step(place == 1, (0, 1) if place == 1 else ()) for place in range(10)],  # once, by chance
        [Step(place % 2 > 0, (0, 1) if place % 2 else (), slow_us=700) for place in range(10)],  # less than half longer
        [Step(place % 2 > 0, (0, 1), copy_after_us=700) for place in range(10)],  # only as long ones last until then
    ],
    ids=["all", "none", "unrelated", "as fast", "waits", "once", "a little", "later"],
)
def test_nothing_is_claimed_of_what_does_not_separate_slow_from_fast(steps: list[Step]) -> None:
    assert slow_beside(load(job_of(steps)), LEAST_NS) == []


def test_recordings_without_steps_tell_as_much() -> None:
    job = {
        rank: [event for event in events if not event["name"].startswith("ProfilerStep")]
        for rank, events in job_of(ALTERNATING).items()
    }
    (found,) = slow_beside(load(job), LEAST_NS)
    assert (len(found.slow), found.count) == (5, 10)


def test_kernels_of_one_place_are_compared_between_steps() -> None:
    graph = load(kernels_beside_collectives())
    (found,) = slow_beside(graph, LEAST_NS)
    assert (graph.names[found.name], graph.names[found.companion], found.op) == (COMPUTE, COMMUNICATE, "")
    assert found.kind == hg.ActivityKind.COMMUNICATION
    assert found.ratio == pytest.approx(2.0, rel=0.01)


def test_chance_claims_as_rarely_as_it_says() -> None:
    draw = random.Random(5)
    claimed = 0
    for _ in range(60):
        steps = [Step(draw.random() < 0.5, (0, 1) if draw.random() < 0.5 else ()) for _ in range(8)]
        claimed += len(slow_beside(load(job_of(steps)), LEAST_NS))
    assert claimed <= 2  # of 60 jobs, 0.3 are expected


@pytest.mark.parametrize(
    "job",
    [Job(ranks=2, steps=6, layers=4, data_strategy="fsdp", seed=2), Job(ranks=4, steps=6, layers=4, seed=3)],
    ids=["fsdp", "data parallel"],
)
def test_simulated_devices_share_nothing(job: Job, tmp_path: Path) -> None:
    simulate(job).write(tmp_path)
    assert slow_beside(hg.load(tmp_path), 0.0) == []


def test_nothing_is_slow_beside_other_work_in_the_demo() -> None:
    assert slow_beside(graph_of(DATA / "demo"), 0.0) == []
