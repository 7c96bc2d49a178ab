from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.graph.evidence import awaited_in_order as module


def pending(waits: list[int], launches: list[int], sums: list[bool]) -> list[int]:
    chosen = module._oldest_pending(np.array(waits, np.int64), np.array(launches, np.int64), np.array(sums, np.bool_))
    return [int(each) for each in chosen]


def test_gathers_are_used_in_the_order_of_launches_and_sums_last() -> None:
    assert pending([3, 6, 9, 10], [1, 2, 5, 8], [False, False, True, False]) == [1, 2, 8, 5]


def test_a_wait_with_nothing_pending_is_for_nothing() -> None:
    assert pending([1, 4, 5], [2], [False]) == [-1, 2, -1]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
def test_each_collective_is_awaited_once_and_behind_its_launch(calls: list[tuple[bool, bool]]) -> None:
    waits = [at for at, (is_wait, _) in enumerate(calls) if is_wait]
    launches = [at for at, (is_wait, _) in enumerate(calls) if not is_wait]
    chosen = pending(waits, launches, [is_sum for is_wait, is_sum in calls if not is_wait])
    known = [each for each in chosen if each >= 0]
    assert len(set(known)) == len(known)
    assert all(launch < wait for wait, launch in zip(waits, chosen, strict=True))
    assert len(known) == most_that_can_be_awaited(calls)


def most_that_can_be_awaited(calls: list[tuple[bool, bool]]) -> int:
    left = awaited = 0
    for is_wait, _ in calls:
        awaited += bool(is_wait and left)
        left += -bool(left) if is_wait else 1
    return awaited


def test_a_place_that_a_step_refutes_waits_for_something_else() -> None:
    """Of two waits at one place, the second one was over before what it would have been for."""
    times = SimpleNamespace(end=np.array([50_000, 90_000]), start=np.array([60_000, 70_000]))
    calls: Any = SimpleNamespace(
        job=SimpleNamespace(activities=times), lanes={0: np.array([7])}, rank=np.zeros(20, np.int64),
        launched=np.full(20, 9), site=np.zeros(20, np.uint64),
        enqueued=SimpleNamespace(first_from=lambda lane, position: position % 2),
    )  # fmt: skip
    assert module._never_refuted(calls, np.array([10, 11]), np.array([2, 3])).tolist() == [False, False]
