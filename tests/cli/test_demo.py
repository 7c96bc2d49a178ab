"""``htagraph demo``: the job of data/demo, written anew, and its summary."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.reach import DATA


def test_the_job_is_that_of_the_repository_and_its_summary_the_same(tmp_path: Path, run: Any) -> None:
    folder = tmp_path / "job"
    ran = run("demo", "-o", folder)
    assert ran.code == 0
    assert str(folder) in ran.err
    shown, recorded = (
        _words(text, path) for text, path in ((ran.out, folder), (run("summary", DATA / "demo").out, DATA / "demo"))
    )
    assert shown == recorded


def _words(text: str, folder: Path) -> list[str]:
    """Return the words of a summary, whatever its folder and however its lines are broken."""
    return text.replace(str(folder), "FOLDER").split()


def test_without_a_folder_it_is_a_temporary_one_that_the_output_names(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("htagraph.simulate.simulate", _Copied)
    ran = run("demo")
    (folder,) = tmp_path.iterdir()
    assert str(folder) in ran.err
    assert (folder / "rank-0.json.gz").is_file()


class _Copied:
    """What is simulated, as it lies in the repository."""

    def __init__(self, job: object) -> None:
        del job

    def write(self, folder: Path) -> list[Path]:
        return [Path(shutil.copy(path, folder)) for path in sorted((DATA / "demo").glob("*.json.gz"))]


def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path, run: Any) -> None:
    (tmp_path / "mine.json").write_text("{}")
    ran = run("demo", "-o", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "not an empty folder" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
