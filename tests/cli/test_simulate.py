"""``htagraph simulate``: traces of a job, and misspelt settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def test_as_many_traces_are_written_as_ranks(tmp_path: Path, run: Any) -> None:
    assert run("simulate", "--ranks", "2", "--steps", "1", "--set", "layers=1", "-o", tmp_path / "job").code == 0
    assert len(hg.load(tmp_path / "job").ranks) == 2
    assert (tmp_path / "job" / "truth").is_dir()


@pytest.mark.parametrize(
    ("wrong", "nearest"), [(["--regime", "gpu_bond"], "gpu_bound"), (["--set", "layer=1"], "layers")]
)
def test_a_misspelt_word_is_answered_with_the_nearest(wrong: list[str], nearest: str, tmp_path: Path, run: Any) -> None:
    ran = run("simulate", *wrong, "-o", tmp_path / "job")
    assert ran.code == 2
    assert f"'{nearest}'" in ran.err
    assert not (tmp_path / "job").exists()


def test_a_setting_needs_a_value(tmp_path: Path, run: Any) -> None:
    assert run("simulate", "--set", "layers", "-o", tmp_path / "job").code == 2
