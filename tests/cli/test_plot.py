"""``htagraph plot``: figures of one job in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


@pytest.mark.parametrize("name", ["temporal_breakdown", "critical-path", "timeline", "memory_timeline"])
def test_a_figure_is_written_to_a_page(name: str, run: Any, tmp_path: Path) -> None:
    target = tmp_path / "a.html"
    ran = run("plot", name, DEMO, "-o", str(target))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "<title>" in target.read_text(encoding="utf-8")


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


def test_the_help_names_the_extra_that_pictures_need(run: Any) -> None:
    assert "htagraph[image]" in run("plot", "--help").out
