"""``htagraph report``: a page, beside the traces and not over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def test_a_page_is_written_and_said_where(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "job.html"
    ran = run("report", DEMO, "--steps", "6", "-o", target)
    assert (ran.code, ran.out) == (0, "")
    assert "Open it in a browser" in ran.err
    page = target.read_text()
    assert f"htagraph critical-path {DEMO} --steps 6" in page


def test_a_trace_is_not_overwritten(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "trace.html"
    file.write_bytes((REPOSITORY / "data" / "demo" / "rank-0.json.gz").read_bytes())
    one_line_of_error(run("report", file, "-o", file), "would be lost")


def test_a_report_is_a_page_by_its_name(run: Any) -> None:
    one_line_of_error(run("report", DEMO, "-o", f"{DEMO}/rank-0.json.gz"), "reports end in .html or .htm")


def test_two_jobs_are_compared(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "diff.html"
    ran = run("report", "--compare", DEMO, DEMO, "-o", target)
    assert ran.code == 0
    assert "takes as long as before" in target.read_text()


def test_a_comparison_takes_two_jobs(run: Any, tmp_path: Path) -> None:
    ran = run("report", "--compare", DEMO, "-o", tmp_path / "diff.html")
    assert ran.code == 2
    assert "it takes two jobs" in ran.err
