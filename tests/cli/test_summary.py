"""``htagraph summary``: its tables and its verdict."""

from __future__ import annotations

import json
from typing import Any

import htagraph as hg
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


def test_the_verdict_is_that_of_the_library(run: Any) -> None:
    assert results(run, "summary", DEMO)["verdict"] == hg.summarize(hg.load(DEMO)).verdict


def test_top_limits_the_kernels_of_each_kind(run: Any) -> None:
    kinds = [row["kind"] for row in results(run, "summary", DEMO, "--top", "1")["kernels"]]
    assert len(kinds) == len(set(kinds))
