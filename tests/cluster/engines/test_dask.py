"""A real Dask cluster of two processes: its answers are those of one graph, workers that die cost nothing."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.cluster.engines.dask import Dask
from htagraph.cluster.run_each import Failed, Patience, run_each
from htagraph.core.errors import HtagraphError
from tests.cluster.calls import doubled, dying, dying_once
from tests.reach import DATA

distributed: Any = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of the libraries below
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask

    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_answer_and_say_what_failed(client: Any) -> None:
    engine = Dask(client)
    assert engine.slots() == 2
    assert dict(run_each(engine, doubled, range(3))) == {0: 0, 1: Failed("odd"), 2: 4}


def test_a_job_on_workers_answers_as_one_graph(client: Any) -> None:
    job, local = hg.load(DATA / "demo", engine=client), hg.load(DATA / "demo")
    assert job.ranks == local.ranks
    assert not job.missing
    pd.testing.assert_frame_equal(hg.temporal_breakdown(job), hg.temporal_breakdown(local))
    pd.testing.assert_frame_equal(hg.step_times(job), hg.step_times(local))
    assert job.moments.makespan_ns() == hg.replay(local).makespan_ns


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


def test_a_worker_that_dies_once_costs_nothing_and_one_that_always_does_its_item(client: Any, tmp_path: Path) -> None:
    engine = Dask(client)
    assert dict(run_each(engine, dying_once, range(4), 2, str(tmp_path / "died"))) == {n: n for n in range(4)}
    answers = dict(run_each(engine, dying, range(3), 1, patience=Patience(tries=3)))
    failed = answers.pop(1)
    assert isinstance(failed, Failed)
    assert "KilledWorker" in failed.why
    assert answers == {0: 0, 2: 2}


def test_no_scheduler_at_an_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "0.2s")
    for address in ("tcp://127.0.0.1:1", "none://here"):
        with pytest.raises(HtagraphError, match="no Dask scheduler answers"):
            Dask.at(address)
