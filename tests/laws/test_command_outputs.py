"""Where results are written: never over what they are the results of."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from htagraph.cli.verbs import QUESTIONS
from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY

DEMO = REPOSITORY / "data" / "demo"
READING = (*QUESTIONS, "summary", "critical-path", "memory", "counters", "patterns", "validate")
"""Verbs that read one job and print what they find."""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(DEMO, tmp_path / "job"))
    for file in folder.glob("*.gz"):  # results are written as .json, not as .json.gz
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("verb", [*READING, "what-if", "diff"])
def test_no_command_writes_its_results_over_a_file_that_it_read(verb: str, job: Path, run: Any) -> None:
    more: dict[str, list[str | Path]] = {"what-if": ["--network", "0.5"], "diff": [job]}
    target = job / "rank-0.json"
    before = target.read_bytes()
    one_line_of_error(run(verb, job, *more.get(verb, []), "-o", target), str(target), "write to another file")
    assert target.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--output", "--perfetto"])
@pytest.mark.parametrize("verb", ["counters", "critical-path"])
def test_nor_over_one_that_the_path_means_and_ranks_left_out(verb: str, option: str, job: Path, run: Any) -> None:
    target = job / "rank-1.json"
    (job.parent / "link.json").symlink_to(target)
    before = target.read_bytes()
    for name in (target, job / ".." / "job" / target.name, job.parent / "link.json"):
        one_line_of_error(run(verb, job, "--ranks", "0", option, name), option, "is one of the files to read")
    assert target.read_bytes() == before


def test_nor_over_a_memory_snapshot(tmp_path: Path, run: Any) -> None:
    path = tmp_path / "snapshot.json"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    before = path.read_bytes()
    one_line_of_error(run("memory", path, "-o", path), "is one of the files to read")
    assert path.read_bytes() == before


def test_results_of_before_are_written_over(job: Path, tmp_path: Path, run: Any) -> None:
    (tmp_path / "out.json").write_text("old")
    assert run("kernels", job, "-f", "json", "-o", tmp_path / "out.json").code == 0
    assert json.loads((tmp_path / "out.json").read_text())["command"] == "kernels"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(run: Any) -> None:
    one_line_of_error(run("kernels", DEMO, "-o", "/dev/full"), "/dev/full", "No space left")


def test_a_name_that_is_not_utf_8_is_written_as_it_is_printed(tmp_path: Path, run: Any) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/bad\xff.json.gz")
    try:
        shutil.copy(DEMO / "rank-0.json.gz", name)
    except OSError:
        pytest.skip("this file system has no such names")
    assert run("kernels", name, "-f", "json", "-o", tmp_path / "out.json").code == 0
    assert "bad?.json.gz" in json.loads((tmp_path / "out.json").read_text())["inputs"][0]["file"]
