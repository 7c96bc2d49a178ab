"""Every option that writes a file, of every verb: where it may be, and how it may be named."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from htagraph.cli.main import app
from tests.command_line import one_line_of_error
from tests.reach import DATA

FOLDERS = {("simulate", "--output"), ("demo", "--output"), ("patterns", "--overlay"), ("serve", "--perfetto-ui")}
"""Options that name a folder: to make, or to read from."""


def options(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (verb, option) for each option that is a path."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from options(command.get_command(None, name), (*words, name))
    function = inspect.unwrap(command.callback) if command.callback else None
    hints = get_type_hints(function) if function else {}
    for each in command.params:
        if each.param_type_name == "option" and "Path" in str(hints.get(each.name)):
            yield words, max(each.opts, key=len)


EVERY = [each for each in options(typer.main.get_command(app)) if (" ".join(each[0]), each[1]) not in FOLDERS]
INPUTS: dict[str, list[Any]] = {"diff": [DATA / "demo", DATA / "demo"], "cache": [], "plot": ["overlap", DATA / "demo"]}
PAGES = ("plot", "report")
"""Verbs whose files are pages."""


def test_every_verb_with_results_is_among_them() -> None:
    assert len([each for each in EVERY if each[1] == "--output"]) > 14
    assert {option for _, option in EVERY} == {"--output", "--perfetto", "--graphviz", "--comment"}


@pytest.mark.parametrize(
    ("verb", "option"), EVERY, ids=lambda each: "-".join(each) if isinstance(each, tuple) else each
)
def test_a_folder_that_is_not_there_is_refused_before_anything_is_read(
    verb: tuple[str, ...], option: str, tmp_path: Path, run: Any
) -> None:
    target = (
        tmp_path
        / "none"
        / {"--perfetto": "o.json", "--graphviz": "o.dot"}.get(option, "o.html" if verb[0] in PAGES else "o.txt")
    )
    ran = run(*verb, *INPUTS.get(verb[0], [tmp_path / "no-traces.json"]), option, target)
    one_line_of_error(ran, str(target), "No such file or directory", "make its folder first")
    assert not (tmp_path / "none").exists()


def test_a_file_is_no_folder_and_no_name_none(tmp_path: Path, run: Any) -> None:
    (tmp_path / "there").touch()
    asked = [*("summary", tmp_path / "no-traces.json"), "-o"]
    one_line_of_error(run(*asked, f"{tmp_path / 'there'}/"), "there/: is a file, not a folder")
    ran = run(*asked, "")
    assert (ran.code, ran.out) == (2, "")
    assert "the name of the file is empty" in ran.err


@pytest.mark.parametrize("option", ["--perfetto", "--graphviz"])
@pytest.mark.parametrize("name", ["o.txt", "o", "o.gz"])
def test_a_name_that_its_program_would_not_take_is_refused(option: str, name: str, tmp_path: Path, run: Any) -> None:
    endings = {"--perfetto": ".json or .json.gz", "--graphviz": ".svg, .pdf, .png, .dot or .gv"}[option]
    ran = run("critical-path", tmp_path / "no-traces.json", option, tmp_path / name)
    one_line_of_error(ran, name, f"end in {endings}")
    assert not list(tmp_path.iterdir())
