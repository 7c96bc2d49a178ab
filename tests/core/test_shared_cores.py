"""Threads that share cores, as arrays: who waits in a recording, and how long in a changed job."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.shared_cores import BLOCKS, RUNS, CoreUsers, Dag, shared, taken

HEAD, ONE, TWO, THREE = range(0, 8, 2)
"""The first vertices of four activities: a thread's, and those of three other threads, which it wakes."""


def job(lengths: list[int], gaps: list[int]) -> tuple[Dag, CoreUsers]:
    """Return a thread that wakes three others, with the length of each activity and the gap before each of these."""
    source = np.array([HEAD, HEAD + 1, HEAD + 1, HEAD + 1, ONE, TWO, THREE])
    target = np.array([HEAD + 1, ONE, TWO, THREE, ONE + 1, TWO + 1, THREE + 1])
    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    lag = np.array([lengths[0], 0, 0, 0, *lengths[1:]])[order]
    gap = np.array([0, 0, gaps[0], 0, gaps[1], 0, gaps[2], 0])
    in_offsets = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=8))))
    out_offsets = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=8))))
    dag = Dag(in_offsets, out_offsets, target, lag, gap, np.zeros(8, np.int64), np.ones(7, np.bool_))
    kind = np.full(8, RUNS, np.int8)
    kind[[ONE, TWO, THREE]] = BLOCKS
    then = np.array([1, -1, 3, -1, 5, -1, 7, -1], np.int32)
    first = kind == BLOCKS
    by_time = np.arange(8)
    users = CoreUsers(
        host=np.zeros(8, np.int32),
        kind=kind,
        lane=np.arange(8) // 2,
        then=then,
        first=first,
        cores=np.array([2]),
        by_time=by_time,
        place=by_time,
        soon=1,
        jitter=0,
        most=8,
    )
    return dag, users


def test_the_third_thread_waits_for_the_first_core_that_is_free() -> None:
    dag, users = job([10, 40, 60, 30], [0, 0, 41])
    time = np.array([0, 10, 10, 50, 10, 70, 51, 81])
    shares = taken(dag, users, np.zeros(8, np.int64), time)
    assert (shares.wait[THREE], shares.wake[THREE]) == (40, 1)
    assert not shares.without.any()
    assert shared(dag, users, shares).tolist() == dag.gap.tolist()


def test_in_a_changed_job_it_gets_the_core_of_another_thread() -> None:
    dag, users = job([10, 40, 60, 30], [0, 0, 41])
    shares = taken(dag, users, np.zeros(8, np.int64), np.array([0, 10, 10, 50, 10, 70, 51, 81]))
    changed, _ = job([10, 40, 20, 30], [0, 0, 41])
    assert shared(changed, users, shares)[THREE] == 21


@pytest.mark.parametrize("wake_ns", [0, 1])
def test_a_thread_that_goes_on_the_moment_a_core_is_free_waited_for_it(wake_ns: int) -> None:
    dag, users = job([10, 40, 60, 30], [0, 0, 40 + wake_ns])
    third = 50 + wake_ns
    time = np.array([0, 10, 10, 50, 10, 70, third, third + 30])
    shares = taken(dag, users, np.zeros(8, np.int64), time)
    assert (shares.pause[THREE], shares.wait[THREE], shares.wake[THREE]) == (0, 40, wake_ns)


def test_a_thread_that_goes_on_while_a_core_has_long_been_free_paused_by_itself() -> None:
    dag, users = job([10, 40, 60, 30], [0, 0, 45])
    shares = taken(dag, users, np.zeros(8, np.int64), np.array([0, 10, 10, 50, 10, 70, 55, 85]))
    assert (shares.pause[THREE], shares.wait[THREE], shares.wake[THREE]) == (45, 0, 0)


@pytest.mark.parametrize("jitter_ns", [0, 2])
def test_a_thread_recorded_a_moment_before_a_core_is_free_waited_for_it(jitter_ns: int) -> None:
    dag, users = job([10, 40, 60, 30], [0, 0, 38])
    users = users._replace(jitter=jitter_ns)
    shares = taken(dag, users, np.zeros(8, np.int64), np.array([0, 10, 10, 50, 10, 70, 48, 78]))
    expected = (40, -2, False) if jitter_ns else (0, 38, True)
    assert (shares.wait[THREE], shares.wake[THREE], shares.without[THREE]) == expected
    assert shared(dag, users, shares).tolist() == dag.gap.tolist()
