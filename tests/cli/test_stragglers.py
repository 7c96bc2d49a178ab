"""``htagraph stragglers``: the straggler and its cause, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


def test_the_straggler_of_the_demo_is_named_with_its_cause(run: Any) -> None:
    found = results(run, "stragglers", DEMO)
    assert found["straggler"] == 2
    assert found["stragglers"][0]["cause"] == "kernels"
    assert sum(row["blamed_us"] for row in found["stragglers"]) == pytest.approx(found["total_wait_us"])
    assert "Rank 2 is the straggler" in found["conclusions"][0]


def test_lateness_by_chance_has_no_straggler_but_a_first_suspect(simulated: Callable[[str], str], run: Any) -> None:
    found = results(run, "stragglers", simulated("gpu_bound"))
    assert found["straggler"] is None
    most = max(found["stragglers"], key=lambda row: row["blamed_us"])
    assert f"rank {most['rank']} (" in found["conclusions"][0]
    assert found["conclusions"][1].startswith(f"Rank {most['rank']}: ")


def test_one_rank_alone_has_nobody_to_wait_for(run: Any) -> None:
    assert "Only one rank" in results(run, "stragglers", DEMO, "--ranks", "0")["conclusions"][0]
