"""A user's executor is used as it is."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

from htagraph.cluster.engines.executor import OfExecutor
from htagraph.cluster.run_each import Failed, run_each
from tests.cluster.calls import doubled, dying


def test_its_threads_are_the_workers() -> None:
    with ThreadPoolExecutor(3) as pool:
        engine = OfExecutor(pool)
        assert engine.slots() == 3
        assert dict(run_each(engine, doubled, [0, 1])) == {0: 0, 1: Failed("odd")}


def test_one_that_breaks_is_said_of_what_it_did_not_answer() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        answers = dict(run_each(OfExecutor(pool), dying, range(5), 0))
    assert set(answers) == set(range(5))
    assert isinstance(answers[4], Failed)
    assert "BrokenProcessPool" in answers[4].why
