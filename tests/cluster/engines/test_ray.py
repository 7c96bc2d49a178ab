"""A real Ray of two workers: its answers are those of one graph, workers that die cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.cluster.engines.ray import Ray
from htagraph.cluster.run_each import Failed, Patience, run_each
from tests.cluster.calls import doubled, dying, dying_once
from tests.reach import DATA, REPOSITORY

pytestmark = pytest.mark.filterwarnings("ignore")  # of the library


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    module: Any = pytest.importorskip("ray")
    module.init(
        num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(REPOSITORY)}},
    )  # fmt: skip
    yield module
    module.shutdown()


def test_workers_answer_and_workers_that_die_cost_nothing(ray: Any, tmp_path: Path) -> None:
    engine = Ray(ray)
    assert engine.slots() == 2
    assert dict(run_each(engine, doubled, range(3))) == {0: 0, 1: Failed("odd"), 2: 4}
    assert dict(run_each(engine, dying_once, range(4), 2, str(tmp_path / "died"))) == {n: n for n in range(4)}
    answers = dict(run_each(engine, dying, range(3), 1, patience=Patience(tries=2)))
    assert isinstance(answers.pop(1), Failed)
    assert answers == {0: 0, 2: 2}


def test_a_job_on_workers_answers_as_one_graph(ray: Any) -> None:
    job, local = hg.load(DATA / "demo", engine=ray), hg.load(DATA / "demo")
    assert job.ranks == local.ranks
    pd.testing.assert_frame_equal(hg.temporal_breakdown(job), hg.temporal_breakdown(local))
