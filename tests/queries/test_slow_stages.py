"""Which stage of a pipeline is found to take longest."""

from __future__ import annotations

import pytest

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.slow_stages import slow_stage
from tests.host_jobs import host_job, transfer
from tests.strategies import Json, op, step

BATCHES = 4


def pipeline(*takes: float, steps: int = 3, pipelines: int = 1) -> DependencyGraph:
    """Return a job whose stages take these times, µs, for each of four batches; the last one answers the first.

    Args:
        takes: by stage.
        steps: how many.
        pipelines: how many there are beside each other, of consecutive ranks.
    """
    count = len(takes)
    job: dict[int, list[Json]] = {rank: [] for rank in range(count * pipelines)}
    period = sum(takes) + (BATCHES - 1) * max(takes) + 10
    for rank, events in job.items():
        stage, free = rank % count, 1.0
        for number in range(steps):
            begin, since = 10 + number * period, free
            for batch in range(BATCHES):
                ready = begin + sum(takes[:stage]) + batch * max(takes[: stage + 1])
                if stage:
                    events += transfer("recv", stage - 1, free + 1, ready, tag=batch)
                events.append(op("work", ready + 0.5, takes[stage] - 4))
                free = ready + takes[stage] - 3
                if stage + 1 < count:
                    events += transfer("send", stage + 1, free, free + 0.5, tag=batch)
            if stage == count - 1:
                events += transfer("send", 0, free + 1, free + 1.5, tag=9)
            if not stage:
                events += transfer("recv", count - 1, free + 2, begin + period - 10, tag=9)
                free = begin + period - 10
            free += 3
            events.append(step(number, since, free - since - 0.5))
    groups = [[rank + count * each for rank in range(count)] for each in range(pipelines)]
    return host_job(job, groups=groups)


def test_the_stage_that_takes_longest_is_found_and_what_equal_stages_take() -> None:
    graph = pipeline(100, 300, 100)
    found = slow_stage(graph)
    assert found is not None
    assert (found.ranks, found.others, found.steps) == ((1,), (0, 2), 3)
    assert found.own_ns / 1000 == pytest.approx(BATCHES * 300, rel=0.05)
    assert found.least_ns / 1000 == pytest.approx(BATCHES * 100, rel=0.1)
    assert found.most_ns / 1000 == pytest.approx(BATCHES * 100, rel=0.1)
    assert found.even[1] == pytest.approx(500 / 3 / 300, rel=0.05)


def test_the_same_stage_of_several_pipelines_is_one() -> None:
    graph = pipeline(100, 300, 100, pipelines=2)
    found = slow_stage(graph)
    assert found is not None
    assert (found.ranks, found.others) == ((1, 4), (0, 2, 3, 5))


def test_of_equal_stages_and_in_jobs_without_stages_none_is_slow() -> None:
    found = slow_stage(pipeline(100, 100, 100))
    assert found is None or found.own_ns < 1.1 * found.least_ns
    replicas = host_job({rank: [step(1, 0, 100), op("work", 1, 50)] for rank in range(2)})
    assert slow_stage(replicas) is None
