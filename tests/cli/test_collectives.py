"""``htagraph collectives``: sums, parts, and what it suggests."""

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


def test_transfers_that_prevail_suggest_another_network(simulated: Callable[[str], str], run: Any) -> None:
    said = results(run, "collectives", simulated("communication_bound"))["conclusions"]
    assert said[-1].endswith("--network 0.5")


def test_collectives_are_summed_up_or_shown_each(run: Any) -> None:
    found = results(run, "collectives", DEMO, "--each")
    (row,) = found["collectives"]
    parts = found["parts"]
    assert len(parts) == row["ranks"] * row["collectives"]
    assert row["wait_us"] + row["transfer_us"] + row["excess_us"] == pytest.approx(row["total_us"])
    assert sum(part["wait_us"] for part in parts) == pytest.approx(row["wait_us"])
    assert found["last_arrivals"][0]["last_rank"] == 2


def test_parts_that_no_other_rank_matches_are_told(run: Any) -> None:
    found = results(run, "collectives", DEMO, "--ranks", "1")
    assert "could not be matched" in " ".join(found["conclusions"])
    assert found["collectives"][0]["op"] == "all_reduce"
