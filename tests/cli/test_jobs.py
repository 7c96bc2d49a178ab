"""``htagraph summary``: its tables and its verdict."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


@pytest.mark.slow
def test_the_verdict_is_that_of_the_library(run: Any) -> None:
    assert results(run, "summary", DEMO)["verdict"] == hg.summarize(hg.load(DEMO)).verdict


def test_top_limits_the_kernels_of_each_kind(run: Any) -> None:
    kinds = [row["kind"] for row in results(run, "summary", DEMO, "--top", "1")["kernels"]]
    assert len(kinds) == len(set(kinds))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["summary", "stragglers"])
def test_workers_answer_for_the_ranks_that_they_can_read(command: str, tmp_path: Path, run: Any) -> None:
    for rank in range(3):
        shutil.copy(f"{DEMO}/rank-{rank}.json.gz", tmp_path)
    (tmp_path / "rank-3.json.gz").write_bytes(b"no trace")
    ran = run(command, tmp_path, "--scheduler", "processes", "--format", "json")
    assert ran.code == 0
    assert "rank-3.json.gz" in ran.err
    found = json.loads(ran.out)["results"]
    assert [row["rank"] for row in found["missing"]] == [3]
    assert found["conclusions"][0].startswith("3 ranks answered; missing are rank 3 (")
    assert found["straggler"] == 2


def test_a_scheduler_that_nothing_is_known_of_is_refused(run: Any) -> None:
    ran = run("summary", DEMO, "--scheduler", "slurm")
    assert (ran.code, ran.out) == (2, "")
    assert "--scheduler" in ran.err
