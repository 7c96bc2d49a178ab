from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.rules.queue_full import queue_full
from tests.strategies import Json, kernel, launch
from tests.trace.kineto.test_operator_flows import recorded, written
from tests.waiting import MADE, by_hand, named, simulated, verdict

DEPTH, WORK_US = 20, 100


def full_queue(count: int) -> list[Json]:
    """Return launches of 2 µs that return only once no more than `DEPTH` works are outstanding."""
    events, now = [], 0
    for i in range(count):
        free = 5 + WORK_US * (i - DEPTH + 1) if i >= DEPTH else 0
        took = max(2, free - now)
        events += [launch(now, took, i + 1), kernel(f"k{i}", 5 + WORK_US * i, WORK_US, i + 1)]
        now += took + 1
    return events


def test_a_launch_that_blocks_waits_for_the_work_whose_place_it_takes() -> None:
    job = by_hand(full_queue(40))
    assert named(job, queue_full(job)) == sorted((f"k{i}", "cudaLaunchKernel") for i in range(20))
    edges = queue_full(job)
    assert (job.activities.end[edges.source >> 1] == job.activities.end[edges.target >> 1]).all()


def test_a_queue_that_never_fills_blocks_nobody() -> None:
    assert len(queue_full(by_hand(full_queue(DEPTH)))) == 0


def test_launches_that_take_long_for_other_reasons_are_left_alone() -> None:
    events, now = [], 0
    for i in range(60):  # every tenth loads a module, whatever is outstanding
        took = 60 + 7 * i if i % 10 == 9 else 2
        events += [launch(now, took, i + 1), kernel(f"k{i}", 5 + WORK_US * i, WORK_US, i + 1)]
        now += took + 1
    assert len(queue_full(by_hand(events))) == 0


def test_launches_that_return_late_agree_on_one_length() -> None:
    """Short works end while a blocked launch wakes up, so that each launch shows a range of lengths, as on an H100."""
    depth, late_us, events, now = 100, (8, 30, 17, 38, 12), [], 0
    for step in range(5):
        first, begin = step * 400, now
        ends = [begin + 5_000 + number for number in range(400)]  # a long work, then works of 1 µs
        for number in range(400):
            free = ends[number - depth] if number >= depth else 0
            took = max(2, free + late_us[step] - now) if free > now else 2
            starts = begin + 5 if number == 0 else ends[number - 1]
            events += [
                launch(now, took, first + number + 1),
                kernel("w", starts, ends[number] - starts, first + number + 1),
            ]
            now += took + 1
        now = max(now, ends[-1]) + 10
    job = by_hand(events)
    edges = queue_full(job)
    blocked = job.activities.duration[edges.target >> 1] > 1_000_000
    assert blocked.sum() == 5
    assert (job.activities.duration[edges.source[blocked] >> 1] > 1_000_000).all()  # the long work freed the place


@pytest.mark.parametrize("name", MADE)
def test_simulated_queues_are_the_true_ones(name: str) -> None:
    job, truth = simulated(MADE[name])
    result = verdict(job, queue_full(job), truth["queue_full"])
    assert (result.truth > 100) == (name == "queue")
    assert result.wrong <= 0.02 * result.truth
    assert result.lost <= 0.02 * result.truth


def operators_at_a_full_queue(count: int) -> list[Json]:
    """Return operators that stand for launches, and block once in the middle of device work and once at its end."""
    works: list[tuple[str, float, float, float, float]] = []
    now, device = 100.0, 110.0
    for number in range(count):
        begin = now
        freed = device + WORK_US * (number - DEPTH)
        paused = max(begin + 3, freed - 30)
        works.append(("aten::inner", begin + 1, paused - begin - 1, 0, 0))
        now = max(paused, freed) + 3
        works.append(("aten::outer", begin, now - begin, device + WORK_US * number, WORK_US))
        now += 2
    return recorded(*works)


def test_operators_that_stand_for_launches_wait_for_work_or_a_part_of_it(tmp_path: Path) -> None:
    graph = hg.load(written(tmp_path, operators_at_a_full_queue(80)))
    edges = graph.edges
    rows = np.flatnonzero(edges.kind == hg.EdgeKind.QUEUE_FULL)
    is_part = edges.source[rows] & 1 == 0
    names = [graph.names[graph.activities.name[target >> 1]] for target in edges.target[rows].tolist()]
    assert {name for name, part in zip(names, is_part, strict=True) if part} == {"aten::inner"}
    assert {name for name, part in zip(names, is_part, strict=True) if not part} == {"aten::outer"}
    assert is_part.sum() >= 35
    assert hg.replay(graph).max_error_ns == 0
    halved = hg.what_if(graph).scale(kind="computation", factor=0.5).run()
    assert halved.saved_ns >= 0.97 * 80 * WORK_US * 1000 / 2
    assert hg.what_if(graph).infinite_host().run().saved_ns < 200_000
