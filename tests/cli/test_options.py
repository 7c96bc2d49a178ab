"""What the commands share: numbers, suggested inputs, and where results go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

import htagraph as hg
from htagraph.cli.options import _noted, _verb, chosen, window
from htagraph.cli.options import given as words_of
from htagraph.cli.writing import refuse_input, width_of
from htagraph.core.errors import Issue
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None), ("0..5", (0, 5)), ("1.5ms..2s", (1500, 2_000_000)), ("..7us", (None, 7)),
        (" 250000 .. ", (250_000, None)), ("500ns..1.", (0.5, 1)),
    ],
)  # fmt: skip
def test_a_window_has_units_and_may_be_open(
    text: str | None, expected: tuple[float | None, float | None] | None
) -> None:
    assert window(text) == expected


@pytest.mark.parametrize("text", ["", "..", "5", "5..5", "2s..1s", "a..b", "1..2..3", "1h..2h", "-1..5", "nan..2"])
def test_what_is_no_window_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"FROM\.\.TO"):
        window(text)


def test_a_command_reads_a_window_without_python_functions_and_suggests_the_same(run: Any) -> None:
    whole = run("idle", DEMO, "--no-cache", "-f", "json")
    ran = run("idle", DEMO, "--no-cache", "--time", "1ms..9ms", "--no-python", "-f", "json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["results"] != json.loads(whole.out)["results"]
    told = run("kernels", DEMO, "--no-cache", "--time", "1ms..9ms", "--no-python").out
    assert f"{DEMO} --time 1ms..9ms --no-python" in told


def test_a_warning_is_one_line_in_words_with_the_command_that_says_all() -> None:
    cut = [Issue(f"rank-{rank}.json", "truncated", "the file ends early", 1, rank) for rank in range(3)]
    harmless = Issue("a.json", "no_window_end", "harmless", 1)
    assert _noted([*cut, harmless], ["x"]) == ("rank-0.json: the file ends early (3 in all): htagraph validate x")
    assert _noted([*cut, Issue("a.json", "header_damaged", "read in part", 1), harmless], ["x"]) == (
        "rank-0.json: the file ends early (3 in all), and 1 further remark: htagraph validate x"
    )
    assert not _noted([harmless], ["x"])


def test_what_waits_for_what_is_no_warning_of_verbs_whose_answers_are_of_recorded_times() -> None:
    late = Issue("a.json", "recording_begins_late", "it begins late", 1)
    for verb, is_told in (("kernels", False), ("critical-path", True)):
        before = _verb.set(verb)
        assert bool(_noted([late], ["x"])) == is_told
        _verb.reset(before)


def test_the_help_names_the_extra_that_pictures_need(run: Any) -> None:
    assert "htagraph[image]" in run("plot", "--help").out
