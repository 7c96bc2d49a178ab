"""Pauses that end right behind work of another thread wait for it, on whichever threads that happens."""

from __future__ import annotations

import htagraph as hg
from tests.strategies import OTHER, Json, annotation, load, op, step
from tests.threads_at_work import links

TRAIN_US, WRITE_US, WAKE_US = 20_000, 55_000, 200


def snapshots(write_us: list[int], train_us: int = TRAIN_US) -> list[Json]:
    """Return a job that writes a snapshot in each second step, in a thread of its own, after the one before is over."""
    events: list[Json] = []
    at = over = 0
    for number in range(2 * len(write_us)):
        begin, at = at, at + train_us
        events.append(op("train", begin + 50, train_us - 50))
        if number % 2:
            resumes = max(at + 30, over + WAKE_US)
            events.append(annotation("wait_for_writer", at + 10, resumes - at - 10))
            thread, writes = OTHER + number, write_us[number // 2]
            over = resumes + 300 + writes
            events += [
                annotation("write", over - writes, writes, thread),
                op("copy", over - writes + 50, writes - 90, thread),
            ]
            at = resumes + 400
            events.append(op("zero", at - 50, 40))
        events.append(step(number, begin, at - begin))
    return events


def test_a_thread_per_snapshot_is_waited_for_though_no_thread_repeats() -> None:
    events = snapshots([WRITE_US + 1000 * number for number in range(6)])
    found = {(source, target) for source, target, _ in links(events)}
    assert found & {("write.end", "wait_for_writer.end"), ("copy.end", "wait_for_writer.end")}
    graph = load(events)
    assert hg.replay(graph).max_error_ns == 0
    half = hg.what_if(graph).scale(factor=0.5, op="write").run()
    assert half.speedup > 1.3, "the next snapshot waits for the one before"


def test_a_snapshot_that_was_over_in_time_is_waited_for_like_the_others() -> None:
    quick = 10_000
    events = snapshots([WRITE_US, WRITE_US + 900, WRITE_US - 700, quick, WRITE_US, WRITE_US + 300, WRITE_US])
    graph = load(events)
    slower = hg.what_if(graph).scale(factor=6, op="write").run()
    truth = load(
        snapshots([6 * each for each in (WRITE_US, WRITE_US + 900, WRITE_US - 700, quick)] + [6 * WRITE_US] * 3)
    )
    assert abs(slower.makespan_ns / (truth.time.max() - truth.origin_ns) - 1) < 0.01


def test_pauses_that_end_anywhere_wait_for_nothing() -> None:
    events: list[Json] = []
    for number in range(12):
        begin = 30_000 * number
        events += [step(number, begin, 29_900), op("work", begin, 9_000), op("more", begin + 20_000, 5_000)]
        end = begin + 10_000 + 7_919 * number % 9_000
        events.append(op("other", end - 3_000, 3_000, OTHER))
    assert not [each for each in links(events) if each[1] == "more.start"]


def compressed_beside(compress_us: list[int]) -> list[Json]:
    """Return steps in which a thread compresses and reduces gradients, and the main thread goes on behind that."""
    events: list[Json] = []
    at = 0
    for number, lasts_us in enumerate(compress_us):
        begin = at
        over = begin + 4_200 + lasts_us
        events += [op("backward", begin + 50, 4_000), op("compress", begin + 4_100, lasts_us, OTHER)]
        events += [op("c10d::allreduce_", over, 40, OTHER), annotation("gloo:all_reduce", over + 60, 900, OTHER + 1)]
        resumes = over + 960 + WAKE_US
        events.append(op("update", resumes, 3_000))
        at = resumes + 3_100
        events.append(step(number, begin, at - begin))
    return events


def test_a_thread_goes_on_behind_a_collective_that_another_thread_asked_for() -> None:
    compress_us = [20_000 + 1_700 * (number % 4) for number in range(8)]
    graph = load(compressed_beside(compress_us))
    assert hg.replay(graph).max_error_ns == 0
    half = hg.what_if(graph).scale(factor=0.5, op="compress").run()
    truth = load(compressed_beside([lasts_us // 2 for lasts_us in compress_us]))
    assert abs(half.makespan_ns / (truth.time.max() - truth.origin_ns) - 1) < 0.02
