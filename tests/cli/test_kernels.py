"""``htagraph kernels`` on data/demo and on jobs without this or that."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.cli.kernels import By, report
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, complete, kernel, launch, load, op, write

DEMO = str(REPOSITORY / "data" / "demo")
every_way = pytest.mark.parametrize("by", list(By), ids=lambda by: by.value)


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run("kernels", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert "NaN" not in ran.out
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


@every_way
def test_the_shares_are_of_all_device_time(by: By, run: Any) -> None:
    found = results(run, DEMO, "--by", by.value, "--top", "1000")
    rows = found["device_time"]
    per_rank = 4 if by == By.RANK else 1
    assert sum(row["share_percent"] for row in rows) == pytest.approx(100 * per_rank)
    graph = hg.load(DEMO)
    busy = graph.activities.duration[graph.activities.on_device].sum() / 1000
    assert sum(row.get("device_us", row.get("total_us")) for row in rows) == pytest.approx(busy)
    assert found["by"] == by.value


@every_way
@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_every_format_can_be_written(by: By, form: str, run: Any) -> None:
    ran = run("kernels", DEMO, "--by", by.value, "-f", form, "--top", "3")
    assert (ran.code, ran.err) == (0, "")
    assert "evice" in ran.out


@every_way
def test_a_command_that_is_suggested_can_be_run(by: By, run: Any) -> None:
    for sentence in results(run, DEMO, "--by", by.value)["conclusions"]:
        _, found, line = sentence.partition(": htagraph ")
        if found:
            assert run(*shlex.split(line)).code == 0


def test_the_slow_rank_is_named(run: Any) -> None:
    assert results(run, DEMO, "--by", "rank")["conclusions"][0].startswith("Rank 2 is the slowest in its kernels: 4")


def test_even_ranks_are_called_even() -> None:
    graph = load({rank: [kernel(COMPUTE, 0, 10)] for rank in range(3)})
    assert report(graph, [], by=By.RANK).sentences == [
        "No rank is slower than the others in its kernels (communication aside)."
    ]


def test_what_a_trace_lacks_is_said() -> None:
    graph = load([op("aten::mm", 0, 5), launch(1, 1, 1), kernel(COMPUTE, 5, 5, 1)])
    assert "with_stack=True" in report(graph, [], by=By.MODULE).sentences[-1]


def test_shapes_and_modules_of_a_trace_that_has_them(tmp_path: Path, run: Any) -> None:
    events = [
        complete("python_function", "nn.Module: Net_0", 0, 50),
        op("aten::mm", 1, 5) | {"args": {"Input Dims": [[2, 3], [3, 4]]}}, launch(2, 1, 1), kernel(COMPUTE, 5, 5, 1),
    ]  # fmt: skip
    path = str(write(events, tmp_path / "a.json"))
    row, _ = results(run, path, "--by", "shape")["device_time"]  # the frame is of no operator
    assert (row["name"], row["input_dims"], row["device_us"]) == ("aten::mm", "[[2, 3], [3, 4]]", 5)
    found = results(run, path, "--by", "module")
    assert found["device_time"][0]["name"] == "nn.Module: Net_0"
    assert found["module_classes"][0]["name"] == "nn.Module: Net"
    assert "--by operator" in found["conclusions"][1]


@every_way
def test_a_job_without_device_work_has_something_to_say(by: By, tmp_path: Path) -> None:
    for events in ([], [op("a", 2, 20), op("b", 5, 3)]):
        assert report(load(events, tmp_path), [], by=by).sentences
