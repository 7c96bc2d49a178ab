"""``htagraph diff``: what it prints, what it suggests, and how it leaves."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer

from htagraph.cli.diff import limit
from htagraph.cli.options import FAILED
from htagraph.simulate import Job, ScaleKernels, simulate
from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")
GEMM = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"
TABLES = {"contributions", "work", "summary", "names", "added", "removed", "renamed", "paired_steps"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("jobs")
    job = Job(ranks=2, steps=3, layers=2)
    slower = job.model_copy(update={"changes": (ScaleKernels(name=GEMM, factor=1.5),)})
    for name, each in (("before", job), ("after", slower)):
        simulate(each).write(folder / name, level=1, truth=False)
    return str(folder / "before"), str(folder / "after")


def results(ran: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


@pytest.mark.slow
def test_the_table_names_the_cause(pair: tuple[str, str], run: Any) -> None:
    ran = run("diff", *pair)
    assert (ran.code, ran.err) == (0, "")
    said = ran.out
    assert "longer" in said
    assert GEMM in said


def test_json_is_the_envelope_of_all_commands(pair: tuple[str, str], run: Any) -> None:
    ran = run("diff", *pair, "-f", "json")
    envelope = json.loads(ran.out)
    assert list(envelope) == [
        "schema_version", "tool", "tool_version", "command", "inputs", "window_us", "warnings", "counts", "results",
    ]  # fmt: skip
    assert [(row["job"], row["rank"]) for row in envelope["inputs"]] == [
        ("before", 0), ("before", 1), ("after", 0), ("after", 1),
    ]  # fmt: skip
    found = envelope["results"]
    assert TABLES | {"conclusions"} <= set(found)
    assert found["change_us"] == pytest.approx(found["after_us"] - found["before_us"])
    assert found["exceeded"] == []
    assert "NaN" not in ran.out
    fractions = {
        key for name in TABLES for row in found[name] for key, value in row.items() if isinstance(value, float)
    }
    assert {key.rpartition("_")[2] for key in fractions - {"count_per_step"}} <= {"us", "percent", "count"}


@pytest.mark.slow
def test_csv_and_markdown_have_every_table(pair: tuple[str, str], run: Any) -> None:
    for name in (*TABLES, "inputs", "figures", "issues", "conclusions"):
        rows = list(csv.reader(io.StringIO(run("diff", *pair, "-f", "csv", "--table", name).out)))
        assert len({len(row) for row in rows}) == 1
    assert run("diff", *pair, "-f", "md").out[0] not in "#|-"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code"),
    [("step_time>+5%", FAILED), ("step_time > +90 %", 0), ("computation>+10us", FAILED), ("memory>+1s", 0)],
)
def test_a_limit_decides_the_exit_code(text: str, code: int, pair: tuple[str, str], run: Any) -> None:
    ran = run("diff", *pair, "--fail-on", text, "-f", "json")
    assert ran.code == code
    assert results(ran)["exceeded"] == ([text] if code else [])
    assert results(ran)["conclusions"][0].startswith("Too long") == bool(code)
    assert run("diff", pair[1], pair[0], "--fail-on", text).code == 0  # it became faster


def test_limits_are_read(run: Any) -> None:
    assert (limit("step_time>+5%").percent, limit("communication>+2ms").us, limit("sync > 3us").us) == (5, 2000, 3)
    for text in ("step_time", "step_time<5%", "colour>+5%", "step_time>+5", "step_time>-5%"):
        with pytest.raises(typer.BadParameter):
            limit(text)
        assert run("diff", DEMO, DEMO, "--fail-on", text).code == 2


@pytest.mark.slow
def test_steps_of_one_job_are_compared(run: Any) -> None:
    ran = run("diff", DEMO, DEMO, "--steps-before", "5", "--steps-after", "7", "--ranks", "0-3", "-f", "json")
    assert [(row["before_step"], row["after_step"]) for row in results(ran)["paired_steps"]] == [(5, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(("by", "has"), [("name", "(ncclDevKernelArgs"), ("short", "AllReduce"), ("path", " > ")])
def test_names_go_by_name_short_name_or_path(by: str, has: str, run: Any) -> None:
    found = results(run("diff", DEMO, DEMO, "--by", by, "-f", "json", "--top", "9999"))
    assert any(has in row["name"] for row in found["names"])


@pytest.mark.slow
def test_bad_input_is_one_line(run: Any, tmp_path: Path) -> None:
    one_line_of_error(run("diff", DEMO, tmp_path / "absent"), "absent")
    one_line_of_error(run("diff", DEMO, DEMO, "--steps-after", "99"), "step 99")
    assert run("diff", DEMO).code == 2


def test_what_is_equal_says_so(run: Any) -> None:
    ran = run("diff", DEMO, DEMO, "--fail-on", "step_time>+0%")
    assert ran.code == 0
    assert "No difference that these recordings show: a usual step takes 8.70 ms in both" in ran.out


def test_a_misspelt_limit_is_answered_with_the_nearest() -> None:
    with pytest.raises(typer.BadParameter, match="did you mean 'step_time'"):
        limit("step_tme>+5%")
    with pytest.raises(typer.BadParameter, match="did you mean 'computation'"):
        limit("computaton>+5%")


def test_folders_of_runs_are_compared_as_runs(pair: tuple[str, str], tmp_path: Path, run: Any) -> None:
    for side, folder in zip(("before", "after"), pair, strict=True):
        for name in ("run1", "run2", "run3"):
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / side / name).symlink_to(folder)
    ran = run("diff", str(tmp_path / "before"), str(tmp_path / "after"), "--fail-on", "step_time>+1%", "-f", "json")
    assert ran.code == FAILED
    assert "(3 runs before, 3 after), which exceeds step_time>+1%" in results(ran)["conclusions"][0]


def test_what_two_steps_cannot_tell_does_not_fail_unless_strict(pair: tuple[str, str], run: Any) -> None:
    limited = ("diff", *pair, "--steps", "5-6", "--fail-on", "step_time>+1%", "-f", "json")
    ran = run(*limited)
    assert ran.code == 0
    assert "cannot tell whether" in results(ran)["conclusions"][0]
    assert results(ran)["step_change_plus_minus_percent"] is None
    assert run(*limited, "--strict").code == FAILED


def test_a_comment_is_written_beside_the_results(pair: tuple[str, str], tmp_path: Path, run: Any) -> None:
    ran = run("diff", *pair, "--comment", str(tmp_path / "comment.md"), "-f", "json")
    assert ran.code == 0
    assert (tmp_path / "comment.md").read_text(encoding="utf-8").startswith("### ")


def test_a_job_that_recorded_nothing_does_not_pass_a_gate(tmp_path: Path, run: Any) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"traceEvents": [], "distributedInfo": {"rank": 0}}')
    for jobs in ((DEMO, empty), (empty, DEMO)):
        assert run("diff", *jobs, "--fail-on", "step_time>+5%").code == 3
