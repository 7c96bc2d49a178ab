"""Every item is answered once, whatever becomes of the calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.cluster import run_each as module
from htagraph.cluster.engines import Engine, engine_of
from htagraph.cluster.run_each import Failed, Patience, run_each


def at_once(function: Callable[..., Any], /, *given: Any) -> Future[Any]:
    """Call a function as soon as it is given."""
    future: Future[Any] = Future()
    try:
        future.set_result(function(*given))
    except Exception as error:  # noqa: BLE001 - the future's
        future.set_exception(error)
    return future


AT_ONCE = Engine(at_once, lambda: 2, deaths=(BrokenExecutor,), hopeless=(KeyError,))


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    pool = ThreadPoolExecutor(4)
    yield engine_of(pool)
    pool.shutdown()


ENDS = st.sampled_from(["answer", "raise", "break", "mend", "fail", "drop"])


@given(st.lists(st.lists(ENDS, min_size=1, max_size=4), max_size=6), st.integers(1, 4))
def test_every_item_is_answered_once_and_tried_no_more_than_allowed(plans: list[list[str]], tries: int) -> None:
    calls: Counter[int] = Counter()

    def call(number: int) -> Any:
        plan = plans[number]
        end = plan[min(calls[number], len(plan) - 1)]
        calls[number] += 1
        if end == "raise":
            raise RuntimeError
        if end == "break":
            raise BrokenExecutor
        if end == "drop":
            raise KeyError
        return {"answer": number, "mend": Failed("later", may_mend=True), "fail": Failed("never")}[end]

    answers = list(run_each(AT_ONCE, call, range(len(plans)), patience=Patience(tries=tries)))
    assert sorted(number for number, _ in answers) == list(range(len(plans)))
    for number, answer in answers:
        ends = (plans[number] + plans[number][-1:] * tries)[:tries]
        died_alone = [at for at in range(1, tries) if ends[at - 1] == ends[at] == "break"]
        final = next(
            (at for at, end in enumerate(ends) if end in ("answer", "fail", "drop") or at in died_alone), tries - 1
        )
        assert calls[number] == final + 1
        assert (answer == number) == (ends[final] == "answer")


def test_what_an_error_says_is_why_there_is_no_answer() -> None:
    def call(number: int) -> int:
        msg = f"no {number}"
        raise ValueError(msg)

    assert dict(run_each(AT_ONCE, call, [3])) == {3: Failed("ValueError: no 3", may_mend=True)}


def test_a_call_that_hangs_is_answered_by_its_copy(threads: Engine) -> None:
    let_go, calls = threading.Event(), Counter[int]()

    def call(number: int) -> int:
        calls[number] += 1
        if number == 1 and calls[number] == 1:
            let_go.wait(30)
        return number

    answers = dict(run_each(threads, call, range(3), patience=Patience(slow_s=0.05)))
    assert not let_go.is_set()
    let_go.set()
    assert answers == {0: 0, 1: 1, 2: 2}
    assert calls[1] == 2


def test_calls_that_never_end_are_given_up(threads: Engine) -> None:
    let_go = threading.Event()

    def call(number: int) -> int:
        if number == 1:
            let_go.wait(30)
        return number

    answers = dict(run_each(threads, call, range(3), patience=Patience(tries=2, slow_s=0.05)))
    let_go.set()
    assert answers[0] == 0
    assert answers[2] == 2
    assert isinstance(answers[1], Failed)
    assert answers[1].why.startswith("no worker answered within")


def test_no_worker_at_all_is_said_of_every_item(threads: Engine) -> None:
    let_go = threading.Event()
    answers = list(run_each(threads, lambda _: let_go.wait(30), range(40), patience=Patience(slow_s=0.05)))
    let_go.set()
    assert len(answers) == 40
    assert all(isinstance(answer, Failed) for _, answer in answers)
