"""The GitHub Action: sound YAML whose shell steps do what they say, run here with bash."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from htagraph.simulate import Job, ScaleKernels, simulate
from tests.reach import REPOSITORY

yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    job = Job(ranks=1, steps=6, layers=1)
    simulate(job).write(folder / "be fore", level=1, truth=False)
    slower = job.model_copy(update={"changes": (ScaleKernels(name="*", factor=1.5),)})
    simulate(slower).write(folder / "after", level=1, truth=False)
    return folder


def test_every_input_is_used_and_no_other() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", (REPOSITORY / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in STEPS)


def test_no_input_becomes_part_of_a_script() -> None:
    assert not [step["run"] for step in STEPS if "${{" in step["run"]]


def test_every_output_is_written() -> None:
    written = set(re.findall(r'echo "([\w-]+)=', STEPS[-1]["run"]))
    assert written == set(ACTION["outputs"])


def compared(folder: Path, before: str, after: str, **given: str) -> tuple[int, dict[str, str], str]:
    """Return (exit code, outputs, job summary) of the last step, run with an action's default inputs and others."""
    inputs = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    inputs |= {"before": before, "after": after} | {name.replace("_", "-"): text for name, text in given.items()}
    values = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)
        for name, text in STEPS[-1]["env"].items()
    }
    output, summary = folder / "output", folder / "summary"
    for file in (output, summary):
        file.write_text("", encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **values, "PATH": path, "PYTHONPATH": str(REPOSITORY),
                   "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}  # fmt: skip
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[-1]["run"]],
        cwd=folder, env=environment, check=False, capture_output=True,
    )  # fmt: skip
    lines = [line.partition("=") for line in output.read_text(encoding="utf-8").splitlines()]
    return ran.returncode, {name: value for name, _, value in lines}, summary.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("package", "installed"), [(None, "/the action"), ("htagraph==1.0; touch owned", None)])
def test_what_is_installed_is_the_action_itself_or_the_package(
    package: str | None, installed: str | None, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$SAID"\n')
    python.chmod(0o755)
    package = ACTION["inputs"]["package"]["default"] if package is None else package
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SAID": str(tmp_path / "said"),
                   "PACKAGE": package, "GITHUB_ACTION_PATH": "/the action"}  # fmt: skip
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[0]["run"]], env=environment, check=True
    )
    words = (tmp_path / "said").read_text().splitlines()
    assert words == ["-m", "pip", "install", "--quiet", installed or package]
    assert not Path("owned").exists()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_slowdown_fails_with_a_summary_and_outputs(jobs: Path) -> None:
    code, outputs, summary = compared(jobs, "be fore", "after")
    assert (code, outputs["exceeded"], outputs["comment"]) == (3, "true", "htagraph-comment.md")
    assert float(outputs["percent"]) > 5
    assert summary.startswith("### ❌ Slower than allowed")
    assert (jobs / "htagraph-comment.md").read_text(encoding="utf-8") == summary


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_what_became_faster_passes(jobs: Path) -> None:
    code, outputs, _ = compared(jobs, "after", "be fore", fail_on="step_time>+5%\nstep_time>+2ms\n", strict="true")
    assert (code, outputs["exceeded"]) == (0, "false")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_traces_that_are_not_there_fail_as_an_error(jobs: Path) -> None:
    assert compared(jobs, "$(touch owned)", "after")[:2] == (1, {})
    assert not (jobs / "owned").exists()
