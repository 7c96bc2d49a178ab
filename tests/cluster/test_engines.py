"""What users give as an engine, and what each engine does as its workers die: an executor, processes, Dask, Ray."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.cluster import engines as module
from htagraph.cluster.engines import Engine, Failed, Patience, engine_of, run_each
from htagraph.core.errors import HtagraphError
from tests.cluster.calls import doubled, dying, dying_once, hanging_once, hindered
from tests.reach import DATA, REPOSITORY

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Yield a real Dask cluster of two processes."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Yield a real Ray of two workers."""
    module: Any = pytest.importorskip("ray")
    module.init(
        num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(REPOSITORY)}},
    )  # fmt: skip
    yield module
    module.shutdown()


def test_words_numbers_executors_and_engines_are_engines() -> None:
    processes = engine_of(3)
    assert processes.slots() == 3
    assert engine_of("processes").slots() >= 1
    assert engine_of(processes) is processes
    with ThreadPoolExecutor(3) as pool:
        engine = engine_of(pool)
        assert engine.slots() == 3
        assert dict(run_each(engine, doubled, [0, 1])) == {0: 0, 1: Failed("odd")}


@pytest.mark.parametrize("engine", ["threads", 0, -1, True, 1.5, object()])
def test_all_else_is_refused_with_what_is_taken(engine: Any) -> None:
    with pytest.raises(TypeError, match=r"concurrent\.futures executor"):
        engine_of(engine)


def test_an_executor_that_breaks_is_said_of_what_it_did_not_answer() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        answers = dict(run_each(engine_of(pool), dying, range(5), 0))
    assert set(answers) == set(range(5))
    assert isinstance(answers[4], Failed)
    assert "BrokenProcessPool" in answers[4].why


@pytest.mark.slow
@pytest.mark.parametrize("given", [2, "client", "ray"])
def test_a_worker_that_dies_once_costs_nothing_and_one_that_always_does_its_item(
    given: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine = engine_of(request.getfixturevalue(given) if isinstance(given, str) else given)
    assert engine.slots() == 2
    assert dict(run_each(engine, doubled, range(4))) == {0: 0, 1: Failed("odd"), 2: 4, 3: Failed("odd")}
    answers = dict(run_each(engine, dying_once, range(6), 2, str(tmp_path / "died")))
    assert answers == {number: number for number in range(6)}
    answers = dict(run_each(engine, dying, range(4), 1, patience=Patience(tries=3 if given == "client" else 2)))
    failed = answers.pop(1)
    assert isinstance(failed, Failed)
    assert given != "client" or "KilledWorker" in failed.why
    assert answers == {0: 0, 2: 2, 3: 3}


@pytest.mark.slow
def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    engine = engine_of(1)
    assert dict(run_each(engine, doubled, [0])) == {0: 0}  # which starts it
    patience = Patience(tries=3, slow_s=0.5)
    answers = dict(run_each(engine, hanging_once, range(2), 0, str(tmp_path / "hung"), patience=patience))
    assert set(answers) == {0, 1}
    assert dict(run_each(engine, doubled, [2])) == {2: 4}


@pytest.mark.slow
@pytest.mark.parametrize("given", ["client", "ray"])
def test_a_job_on_workers_answers_as_one_graph(given: str, request: pytest.FixtureRequest) -> None:
    job, local = hg.load(DATA / "demo", engine=request.getfixturevalue(given)), hg.load(DATA / "demo")
    assert job.ranks == local.ranks
    assert not job.missing
    pd.testing.assert_frame_equal(hg.temporal_breakdown(job), hg.temporal_breakdown(local))
    pd.testing.assert_frame_equal(hg.step_times(job), hg.step_times(local))
    assert job.moments.makespan_ns() == hg.replay(local).makespan_ns


@pytest.mark.slow
def test_a_worker_that_dies_and_one_that_is_slow_change_no_answer(tmp_path: Path) -> None:
    mark, processes = str(tmp_path / "died"), engine_of(2)
    engine = replace(processes, submit=partial(processes.submit, hindered, mark))
    job, local = hg.load(DATA / "demo", engine=engine), hg.load(DATA / "demo")
    assert Path(mark).exists()
    assert (job.ranks, job.missing) == (local.ranks, ())
    for analysis in (hg.temporal_breakdown, hg.step_times):
        pd.testing.assert_frame_equal(analysis(job), analysis(local))
    assert job.moments.makespan_ns() == hg.replay(local).makespan_ns


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_worker_and_a_file_that_cannot_be_read_cost_no_other_rank_its_answer(
    client: Any, tmp_path: Path
) -> None:
    for path in (DATA / "demo").glob("*.json.gz"):
        shutil.copy(path, tmp_path)
    (tmp_path / "rank-1.json.gz").write_bytes(b"\x1f\x8b\x08 no gzip")
    victim = next(iter(client.run(os.getpid).values()))
    threading.Timer(0.05, os.kill, (victim, signal.SIGKILL)).start()
    job = hg.load(tmp_path, engine=client)
    assert job.ranks == (0, 2, 3)
    [lacking] = job.missing
    assert (lacking.rank, Path(lacking.file).name) == (1, "rank-1.json.gz")
    expected = hg.load({rank: tmp_path / f"rank-{rank}.json.gz" for rank in (0, 2, 3)})
    pd.testing.assert_frame_equal(hg.overlap(job), hg.overlap(expected))
    assert hg.overlap(job).attrs["missing"] == [1]


def test_no_scheduler_at_an_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    dask: Any = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "0.2s")
    for address in ("tcp://127.0.0.1:1", "none://here"):
        with pytest.raises(HtagraphError, match="no Dask scheduler answers"):
            engine_of(address)


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
