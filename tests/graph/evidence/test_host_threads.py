from __future__ import annotations

import numpy as np

from htagraph.graph.evidence.host_threads import HostThread, host_threads
from tests.strategies import OTHER, Json, complete, op
from tests.waiting import by_hand

BACKWARD = "autograd::engine::evaluate_function: A"


def threads(*events: Json) -> list[HostThread]:
    return host_threads(by_hand(list(events)), 0)


def test_the_busiest_thread_comes_first_and_a_thread_of_backward_operators_is_a_worker() -> None:
    first, second = threads(op(BACKWARD, 0, 10, OTHER), op("x", 20, 5), op("y", 30, 5))
    assert (len(first.vertices), first.is_worker) == (4, False)
    assert (len(second.vertices), second.is_worker) == (2, True)


def test_moments_lie_in_order_and_say_what_runs_behind_them() -> None:
    (thread,) = threads(op("outer", 0, 10), op("inner", 2, 3), complete("python_function", "frame", 12, 4))
    assert (thread.times - thread.times[0]).tolist() == [0, 2000, 5000, 10_000, 12_000, 16_000]
    assert thread.running.tolist() == [0, 1, 0, -1, 2, -1]
    assert thread.tops.tolist() == [0, 2]


def test_a_thread_and_its_worker_are_idle_where_both_are() -> None:
    caller, worker = threads(op("f", 0, 10), op("g", 100, 10), op(BACKWARD, 20, 30, OTHER))
    both = caller.with_worker(worker)
    assert np.all(np.diff(both.times) >= 0)
    assert (both.running >= 0).tolist() == [True, False, True, False, True, False]
