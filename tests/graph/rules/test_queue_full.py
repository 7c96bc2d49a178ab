from __future__ import annotations

import pytest

from htagraph.graph.rules.queue_full import queue_full
from tests.strategies import Json, kernel, launch
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
