from __future__ import annotations

from threading import Barrier, get_ident

import pytest

from htagraph.core.ahead import ahead, threads_for


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    assert list(ahead(lambda number: number * number, range(20), threads)) == [(i, i * i) for i in range(20)]
    assert list(ahead(abs, [], threads)) == []


def test_as_many_results_are_computed_at_once_as_there_are_threads() -> None:
    together = Barrier(3)
    assert len(list(ahead(lambda _: together.wait(timeout=30), range(6), 3))) == 6


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
    monkeypatch.setattr("htagraph.core.ahead.processors", lambda: 3)
    assert (threads_for(100), threads_for(10_000_000)) == (1, 3)
