"""What the commands share: numbers, suggested inputs, and where results go."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

import htagraph as hg
from htagraph.cli.options import chosen, refuse_input, width_of
from htagraph.cli.options import given as words_of
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def test_numbers_are_read_or_wrong_usage() -> None:
    assert chosen(None, "--ranks") is None
    assert chosen("0,3-5", "--ranks") == [0, 3, 4, 5]
    with pytest.raises(typer.BadParameter, match="0,3-7"):
        chosen("a", "--ranks")


def test_a_suggested_command_reads_the_same() -> None:
    assert words_of(["a", "b"], "0", "4-6") == ["a", "b", "--ranks", "0", "--steps", "4-6"]
    assert words_of(["a"] * 5) == ["PATHS"]


def test_what_was_read_is_not_written_over(tmp_path: Path) -> None:
    target = tmp_path / "rank-0.json"
    refuse_input(target, [str(tmp_path)], "--output")
    target.write_text("{}")
    with pytest.raises(hg.HtagraphError, match="is one of the files to read"):
        refuse_input(target, [str(tmp_path)], "--output")


def test_a_file_has_a_width_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert width_of(Path("out.txt")) == 140
    assert width_of(None) == 40
