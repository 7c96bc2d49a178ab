from __future__ import annotations

import gc
import os
import weakref
from threading import Barrier, Thread, get_ident

import pytest

from htagraph.core.computing import Threads, ahead, once, processors, threads_for
from tests.patience import PATIENCE_S


def test_processors_that_this_process_may_not_use_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert processors() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors() == 8


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    assert list(ahead(lambda number: number * number, range(20), threads)) == [(i, i * i) for i in range(20)]
    assert list(ahead(abs, [], threads)) == []


def test_as_many_results_are_computed_at_once_as_there_are_threads() -> None:
    together = Barrier(3)
    assert len(list(ahead(lambda _: together.wait(timeout=PATIENCE_S), range(6), 3))) == 6


def test_who_stops_early_has_one_result_per_thread_too_many_at_most() -> None:
    computed: list[int] = []
    for number, _ in ahead(computed.append, range(1000), 3):
        if number == 4:
            break
    assert set(range(5)) <= set(computed) <= set(range(8))


def test_one_thread_computes_what_is_asked_for_and_nothing_more() -> None:
    computed: list[tuple[int, int]] = []
    results = ahead(lambda number: computed.append((number, get_ident())), range(9), 1)
    next(results)
    assert computed == [(0, get_ident())]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_where_its_result_would(threads: int) -> None:
    results = ahead(lambda number: 1 // number, [1, 0], threads)
    assert next(results) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_small_work_gets_no_threads_and_large_work_not_more_than_there_are_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("htagraph.core.computing.processors", lambda: 3)
    assert (threads_for(100), threads_for(10_000_000)) == (1, 3)


class Subject:
    """Something that results are about."""


def test_a_result_is_computed_once_per_subject() -> None:
    calls: list[Subject] = []

    def result_of(subject: Subject) -> object:
        calls.append(subject)
        return object()

    count = once(result_of)
    one, other = Subject(), Subject()
    assert count(one) is count(one)
    assert count(one) is not count(other)
    assert calls == [one, other]


def test_a_result_goes_with_its_subject() -> None:
    subject = Subject()
    kept = once(lambda _: Subject())(subject)
    result = weakref.ref(kept)
    del kept, subject
    gc.collect()
    assert result() is None


def _refused(_thread: Thread) -> None:
    msg = "can't start new thread"  # as CPython says it
    raise RuntimeError(msg)


def test_where_the_system_refuses_threads_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thread, "start", _refused)
    with Threads(3) as threads:
        assert list(threads.map(abs, [3, -1, -2])) == [3, 1, 2]
        with pytest.raises(ZeroDivisionError):
            threads.submit(divmod, 1, 0).result()
    assert list(ahead(abs, [3, -1, -2], threads=2)) == [(3, 3), (-1, 1), (-2, 2)]


def test_a_function_runs_once_although_a_thread_was_refused_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[int]()
    with Threads(4) as threads:
        threads.submit(calls.append, 0).result()
        monkeypatch.setattr(Thread, "start", _refused)  # one thread is there, and takes what the pool has kept
        futures = [threads.submit(calls.append, number) for number in range(1, 100)]
        assert [future.result() for future in futures] == [None] * 99
    assert sorted(calls) == list(range(100))


def test_a_pool_that_was_shut_down_says_so() -> None:
    threads = Threads(1)
    threads.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        threads.submit(abs, 1)
