"""``htagraph critical-path``: shares, segments, steps, and what it suggests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from htagraph.findings.phrases import time_text
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


@pytest.mark.parametrize(
    ("regime", "bound"),
    [("gpu_bound", "computation"), ("host_bound", "host code"), ("communication_bound", "transfers between ranks")],
)
def test_the_path_names_what_bounds_the_job_and_a_change_that_helps(
    regime: str, bound: str, simulated: Callable[[str], str], run: Any
) -> None:
    said = results(run, "critical-path", simulated(regime))["conclusions"]
    assert said[1].startswith(f"Bound by {bound}")
    line = shlex.split(said[-1].partition(": htagraph ")[2])
    changed = results(run, *line)
    (prediction,), steps = changed["prediction"], len({row["step"] for row in changed["step_times"]})
    assert prediction["saved_us"] > 0
    assert f" saves {time_text(prediction['saved_us'] / steps)} per step." in said[-1]


def test_a_faster_network_never_saves_more_than_the_path_allows(simulated: Callable[[str], str], run: Any) -> None:
    found = results(run, "critical-path", simulated("communication_bound"))
    (row,) = [row for row in found["shares"] if row["key"] == "communication"]
    (prediction,) = results(run, "what-if", simulated("communication_bound"), "--network", "0.5")["prediction"]
    assert 0 < prediction["saved_us"] <= row["time_us"] / 2


def test_the_segments_of_the_path_sum_to_its_makespan(run: Any) -> None:
    found = results(run, "critical-path", DEMO, "--segments")
    assert sum(row["duration_us"] for row in found["segments"]) == pytest.approx(found["makespan_us"], abs=1e-6)
    assert len(found["segments"]) == found["segments_count"]


def test_a_step_has_a_path_of_its_own(run: Any) -> None:
    whole, part, same = (
        results(run, "critical-path", DEMO, *more) for more in ([], ["--step", "6"], ["--steps", "6-6"])
    )
    assert part == same
    assert 0 < part["makespan_us"] < 0.5 * whole["makespan_us"]


def test_top_limits_each_group_of_shares(run: Any) -> None:
    rows = results(run, "critical-path", DEMO, "--top", "2")["shares"]
    assert {group: sum(row["group"] == group for row in rows) for group in ("category", "operator")} == {
        "category": 2, "operator": 2,
    }  # fmt: skip


def test_no_cell_of_a_readers_table_is_blank(run: Any) -> None:
    ran = run("critical-path", DEMO, "--segments", "--format", "md")
    rows = [line for line in ran.out.splitlines() if line.startswith("| ")]
    assert rows
    assert [row for row in rows if "|  |" in row] == []
