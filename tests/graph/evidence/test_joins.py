"""A wait that joins several threads waits for all of them, though only the last one shows."""

from __future__ import annotations

import pytest

import htagraph as hg
from tests.strategies import OTHER, Json, annotation, load, op, step
from tests.threads_at_work import links

UPDATE_US, WAKE_US = 4_000, 150


def replicas(*work_us: int, steps: int = 8, name: str = "replica_{}") -> list[Json]:
    """Return threads that each work and then meet; the main thread updates behind the last one, and all begin again."""
    events: list[Json] = []
    at = 0
    for number in range(steps):
        last = max(work_us)
        for thread, takes in enumerate(work_us):
            takes_now = takes + 13 * ((number + thread) % 3)
            last = max(last, takes_now)
            events.append(annotation(name.format(thread), at + 100, takes_now, OTHER + thread))
            events.append(op("work", at + 110, takes_now - 20, OTHER + thread))
        resumes = at + 100 + last + WAKE_US
        events += [op("update", resumes, UPDATE_US), step(number, at, resumes + UPDATE_US - at)]
        at = resumes + UPDATE_US + 50
    return events


@pytest.mark.parametrize("works", [(30_000, 20_000), (30_000, 20_000, 12_000), (20_000, 30_000)])
def test_when_the_slowest_becomes_the_fastest_the_next_one_binds(works: tuple[int, ...]) -> None:
    slowest = works.index(max(works))
    graph = load(replicas(*works))
    assert hg.replay(graph).max_error_ns == 0
    quick = hg.what_if(graph).scale(factor=0.1, op=f"replica_{slowest}").run()
    changed = [takes // 10 if place == slowest else takes for place, takes in enumerate(works)]
    truth = load(replicas(*changed))
    assert quick.makespan_ns == pytest.approx(truth.time.max() - truth.origin_ns, rel=0.01)


def test_a_queue_of_two_producers_joins_nothing() -> None:
    """The consumer goes on with each item: no item lies between two of its waits."""
    events: list[Json] = []
    for number in range(14):
        begin = 10_000 * number
        events.append(op("produce", begin - 10_000, 19_000 + 7 * (number % 3), OTHER + number % 2))
        events += [op("consume", begin + 9_200 + 7 * (number % 3), 3_000), step(number, begin, 9_990)]
    twice = [sure for source, target, sure in links(events) if (source, target) == ("produce.end", "consume.start")]
    assert 75 not in twice, "no other item is taken along"
