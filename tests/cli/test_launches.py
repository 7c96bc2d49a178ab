"""``htagraph launches``: tables, sentences and small jobs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.command_line import one_line_of_error
from tests.damage import document, healthy, written
from tests.reach import DATA
from tests.strategies import COMPUTE, kernel, runtime

DEMO = str(DATA / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run("launches", *arguments, "-f", "json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


def test_the_tables_are_those_of_the_analyses(run: Any) -> None:
    found = results(run, DEMO)
    graph = hg.load(DEMO)
    assert set(found) == {"calls", "operators", "graph_launches", "compiled_regions", "phases", "conclusions"}
    assert sum(row["works"] for row in found["calls"]) == len(hg.launch_stats(graph))
    assert len(found["operators"]) == len(hg.operator_kernels(graph))


def test_calls_that_take_longer_than_their_work_lead_to_opportunities(run: Any) -> None:
    said = results(run, DEMO)["conclusions"]
    (line,) = [each for each in said if "opportunities" in each]
    assert run(*shlex.split(line.partition(": htagraph ")[2])).code == 0


def test_graph_launches_are_summed_up(run: Any, tmp_path: Path) -> None:
    works = [kernel(COMPUTE, 20, 5, 1), kernel(COMPUTE, 35, 5, 1)]
    path = written(tmp_path / "graphs.json", document([runtime("cudaGraphLaunch", 0, 3, 1), *works]))
    assert any("the device is idle 50.0 % of the time" in each for each in results(run, str(path))["conclusions"])


@pytest.mark.parametrize("events", [[], healthy()], ids=["nothing", "one rank"])
@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_small_jobs_get_an_answer(events: list[Any], form: str, run: Any, tmp_path: Path) -> None:
    ran = run("launches", written(tmp_path / "small.json", document(events)), "-f", form)
    assert (ran.code, ran.err) == (0, "")
    assert "onclusion" in ran.out


def test_an_absent_rank_is_one_line(run: Any) -> None:
    one_line_of_error(run("launches", DEMO, "--ranks", "9"), "rank 9")
