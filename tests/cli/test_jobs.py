"""``htagraph summary``: its tables and its verdict."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.cli import jobs
from tests.cli.test_what_if import results
from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


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


@pytest.mark.parametrize("name", ["temporal_breakdown", "critical-path", "timeline", "memory_timeline"])
def test_a_figure_is_written_to_a_page(name: str, run: Any, tmp_path: Path) -> None:
    target = tmp_path / "a.html"
    ran = run("plot", name, DEMO, "-o", str(target))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "<title>" in target.read_text(encoding="utf-8")


def test_the_help_names_every_figure_of_one_job() -> None:
    of_one_job = set(hg.plot.__all__) - {"diff", "sweep", "what_if"}
    assert of_one_job <= set(re.findall(r"\w+", jobs.plot.__doc__ or ""))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["what_if", DEMO, "-o", "a.html"], "'what_if' is no figure of one job"),
        (["nonsense", DEMO, "-o", "a.html"], "'nonsense' is no figure of one job"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_of_usage(arguments: list[str], said: str, run: Any, tmp_path: Path) -> None:
    arguments[-1] = str(tmp_path / arguments[-1])
    ran = run("plot", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_figure_is_refused(run: Any, tmp_path: Path) -> None:
    one_line_of_error(run("plot", "overlap", DEMO, "-o", tmp_path / "a.pdf"), "figures end in .html, .png or .svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_jobs_are_compared(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "diff.html"
    ran = run("report", "--compare", DEMO, DEMO, "-o", target)
    assert ran.code == 0
    assert "No difference that these recordings show" in target.read_text()


def test_a_comparison_takes_two_jobs(run: Any, tmp_path: Path) -> None:
    ran = run("report", "--compare", DEMO, "-o", tmp_path / "diff.html")
    assert ran.code == 2
    assert "it takes two jobs" in ran.err


@pytest.mark.slow
def test_the_page_and_its_events_are_served_until_it_is_interrupted() -> None:
    words = [sys.executable, "-m", "htagraph", "serve", "data/demo", "--no-cache"]
    with subprocess.Popen(words, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        address = next(found[0] for line in lines if (found := re.match(r"http://127\.0\.0\.1:\d+/", line)))
        with urllib.request.urlopen(address) as page:
            assert b"Findings" in page.read()
        with urllib.request.urlopen(f"{address}event/5") as event:
            assert b'"activity": 5' in event.read()
        running.terminate()
        running.stderr.read()
    assert running.returncode in (143, -15)


def test_an_export_says_what_was_written_and_needs_a_folder(tmp_path: Path, run: Any) -> None:
    ran = run("export", DEMO, "--chakra", tmp_path / "et")
    assert ran.code == 0
    assert "et/: 4 execution traces of Chakra, " in ran.err
    assert sorted(path.name for path in (tmp_path / "et").iterdir())[:2] == ["comm_group.json", "rank.0.et"]
    assert run("export", DEMO).code == 2
