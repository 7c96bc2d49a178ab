"""``htagraph patterns`` and ``htagraph roofline``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.analyses.test_cupti_counters import FMA, ranges
from tests.analyses.test_kernel_patterns import linear
from tests.reach import REPOSITORY
from tests.strategies import launch, op, write

DEMO = str(REPOSITORY / "data" / "demo")
HOST = str(REPOSITORY / "data" / "gloo_ddp")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, "error" in ran.err) == (0, False)
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


def test_patterns_are_those_of_the_function(run: Any) -> None:
    rows = results(run, "patterns", DEMO, "--operator", "aten::addmm", "--min-length", "1")["patterns"]
    assert rows == hg.kernel_patterns(hg.load(DEMO), "aten::addmm", min_length=1).to_dict("records")


@pytest.mark.parametrize("form", ["table", "csv", "md"])
@pytest.mark.parametrize("command", [["patterns", DEMO, "--operator", "aten::addmm", "--min-length", "1"],
                                     ["roofline", HOST, "--top", "3"]])  # fmt: skip
def test_every_format_can_be_written(command: list[str], form: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # narrower tables cut names
    ran = run(*command, "-f", form)
    assert (ran.code, "error" in ran.err) == (0, False)
    assert "aten::addmm" in ran.out


def test_an_overlay_is_written_where_asked_for(run: Any, tmp_path: Path) -> None:
    ran = run(
        "patterns", str(write(linear(0, 1, "a", "b", "c"), tmp_path / "t.json")), "--overlay", str(tmp_path / "o")
    )
    assert ran.code == 0
    assert ran.err == f"htagraph: wrote {tmp_path}/o/overlaid_t.json; search it for Patterns\n"
    assert (tmp_path / "o" / "overlaid_t.json").exists()


def test_nothing_found_suggests_what_to_run(run: Any) -> None:
    ran = run("patterns", DEMO, "--operator", "aten::addmm", "--min-length", "99")
    (line,) = [line for line in ran.out.splitlines() if "--min-length" in line]
    assert run(*shlex.split(line[line.index("patterns") :])).code == 0


def test_the_roofline_is_that_of_the_function(run: Any) -> None:
    rows = results(run, "roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50")["roofline"]
    table = hg.roofline(hg.load(HOST), peak_tflop_s=1, peak_gb_s=50)
    assert [row["flop"] for row in rows] == table["flop"].tolist()
    assert {row["bound"] for row in rows} <= {"compute", "memory"}


def test_the_roofline_says_what_to_do(run: Any) -> None:
    assert "record_shapes=True" in run("roofline", DEMO).out
    assert "--peak-tflops" in run("roofline", HOST).out
    assert "below the roof" in run("roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50").out


def test_counters_are_a_table_of_their_own(run: Any, tmp_path: Path) -> None:
    path = write([op("x", 0, 9), launch(1, 1, 1), *ranges(5)], tmp_path / "t.json")
    found = results(run, "roofline", str(path))
    assert next((row["counter"], row["value"]) for row in found["counters"]) == (FMA, 5.0)


def test_a_misspelt_operator_is_answered_with_the_nearest(run: Any) -> None:
    ran = run("patterns", DEMO, "--operator", "aten::adddmm")
    assert ran.code == 0
    shown = " ".join(ran.out.split())
    assert "No operator or annotation matches 'aten::adddmm'; did you mean 'aten::addmm'" in shown
