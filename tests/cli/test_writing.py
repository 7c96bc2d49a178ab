"""Where results go and in which form."""

from __future__ import annotations

import inspect
import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

from htagraph.cli import writing
from htagraph.cli.main import app
from htagraph.cli.writing import Format, form_of, show_messages, target
from tests.command_line import one_line_of_error
from tests.patience import PATIENCE_S
from tests.reach import DATA, REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.json", "json"), ("a.CSV", "csv"), ("a.md", "md"), ("a.txt", "table"), ("a.parquet", "parquet"),
     ("a", "table"), ("a/", "csv"), ("/dev/null", "table")],
)  # fmt: skip
def test_the_end_of_a_name_says_the_form(name: str, form: str) -> None:
    assert form_of(None, target(name)).value == form
    assert form_of(Format.PARQUET, target(name)) is Format.PARQUET


def test_what_cannot_be_written_there_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="one file per table is written as csv or parquet only"):
        form_of(Format.JSON, target("a/"))
    with pytest.raises(typer.BadParameter, match="parquet is no text"):
        form_of(Format.PARQUET, None)
    with pytest.raises(typer.BadParameter, match="the name of the file is empty"):
        target("")


@pytest.mark.parametrize("name", ["a.xyz", "a.html", "a.json.gz"])  # a figure is no format
def test_an_unknown_end_names_the_known_ones(name: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"\.json, \.csv, \.md, \.txt, \.parquet"):
        form_of(None, target(name))


@pytest.mark.parametrize(
    ("command", "title"),
    [
        (["what-if", DEMO, "--network", "2"], "The job would be"),
        (["what-if", DEMO, "--sweep", "network=0.5,1"], "Of these factors, 0.5 is the fastest"),
        (["critical-path", DEMO], "Bound by computation"),
        (["kernels", DEMO, "--by", "rank"], "Rank 2 is the slowest"),
        (["memory", DEMO], "No allocation was recorded"),
        (["stragglers", DEMO], "Rank 2 is the straggler"),
    ],
)
def test_a_name_that_ends_as_a_figure_gets_the_figure(run: Any, tmp_path: Path, command: list[str], title: str) -> None:
    file = tmp_path / "a.html"
    ran = run(*command, "-o", file)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith("MB, the figure.\n")
    page = file.read_text(encoding="utf-8")
    assert "<title>" in page and title in page


def test_an_unknown_end_names_figures_where_there_is_one(run: Any, tmp_path: Path) -> None:
    ran = run("kernels", DEMO, "-o", tmp_path / "a.pdf")
    assert ran.code == 2
    assert ".parquet, .html, .png, .svg" in " ".join(ran.err.replace("│", " ").split())


def test_a_command_without_a_figure_says_so_before_it_reads(run: Any, tmp_path: Path) -> None:
    for command in ("patterns", "phases"):
        ran = run(command, tmp_path / "no trace is here", "-o", tmp_path / "a.svg")
        assert ran.code == 2
        assert "this command has no figure" in " ".join(ran.err.replace("│", " ").split())


def test_a_result_without_a_figure_names_the_formats(run: Any, tmp_path: Path) -> None:
    ran = run("kernels", DEMO, "--by", "annotation", "-o", tmp_path / "a.svg")
    assert ran.code == 2
    assert "has no figure; choose a format from .json, .csv" in " ".join(ran.err.replace("│", " ").split())


def test_json_and_markdown_need_no_format(run: Any, tmp_path: Path) -> None:
    for name in ("a.json", "a.md"):
        assert run("plan", DEMO, "-o", tmp_path / name).code == 0
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["command"] == "plan"
    assert "\n\n## What to change" in (tmp_path / "a.md").read_text(encoding="utf-8")


def test_a_folder_gets_a_file_per_table(run: Any, tmp_path: Path) -> None:
    ran = run("summary", DEMO, "-o", f"{tmp_path / 'out'}/")
    assert (ran.code, ran.out) == (0, "")
    assert f"tables in {tmp_path / 'out'}/" in ran.err
    tables = {file.stem: pd.read_csv(file) for file in (tmp_path / "out").iterdir()}
    assert {"inputs", "kernels", "temporal_breakdown", "issues", "verdict"} <= set(tables)
    assert tables["temporal_breakdown"]["rank"].tolist() == [0, 1, 2, 3]


def test_one_table_is_one_file_and_several_are_not(run: Any, tmp_path: Path) -> None:
    assert run("phases", DEMO, "-o", tmp_path / "a.csv").code == 0
    assert "wall_us" in pd.read_csv(tmp_path / "a.csv").columns
    ran = run("idle", DEMO, "-o", tmp_path / "b.csv")
    assert ran.code == 2
    assert "streams, pauses" in " ".join(ran.err.replace("│", " ").split())
    assert not (tmp_path / "b.csv").exists()


def test_parquet_is_no_text(run: Any) -> None:
    ran = run("plan", DEMO, "-f", "parquet")
    assert (ran.code, ran.out) == (2, "")
    assert "-o DIR/" in ran.err


def test_a_table_file_never_replaces_a_trace(run: Any, tmp_path: Path) -> None:
    trace = tmp_path / "inputs.csv"
    trace.write_text('{"traceEvents": []}', encoding="utf-8")
    ran = run("idle", trace, "-f", "csv", "-o", f"{tmp_path}/")
    assert ran.code == 1
    assert "is one of the files to read" in ran.err


FOLDERS = {("simulate", "--output"), ("demo", "--output"), ("patterns", "--overlay"), ("serve", "--perfetto-ui")}
"""Options that name a folder: to make, or to read from."""


def options(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (verb, option) for each option that is a path."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from options(command.get_command(None, name), (*words, name))
    asked = inspect.signature(command.callback).parameters if command.callback else {}
    for each in command.params:
        if each.param_type_name == "option" and each.name in asked and "Path" in str(asked[each.name].annotation):
            yield words, max(each.opts, key=len)


EVERY = [each for each in options(typer.main.get_command(app)) if (" ".join(each[0]), each[1]) not in FOLDERS]
INPUTS: dict[str, list[Any]] = {"diff": [DATA / "demo", DATA / "demo"], "cache": [], "plot": ["overlap", DATA / "demo"]}
PAGES = ("plot", "report")
"""Verbs whose files are pages."""


def test_every_verb_with_results_is_among_them() -> None:
    assert len([each for each in EVERY if each[1] == "--output"]) > 14
    assert {option for _, option in EVERY} == {"--output", "--perfetto", "--graphviz", "--comment", "--chakra"}


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
    endings = {"--perfetto": ".json, .json.gz, .pftrace or .pftrace.gz", "--graphviz": ".svg, .pdf, .png, .dot or .gv"}[
        option
    ]
    ran = run("critical-path", tmp_path / "no-traces.json", option, tmp_path / name)
    one_line_of_error(ran, name, f"end in {endings}")
    assert not list(tmp_path.iterdir())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_stderr_is_no_terminal(run: Any) -> None:
    assert run("idle", REPOSITORY / "data" / "demo").err == ""


def test_a_phase_is_shown_once_it_has_lasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_SHOWN_AFTER_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with writing.phase("writing"):
        until = time.monotonic() + PATIENCE_S
        while "writing" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "writing" in screen.getvalue()


def test_a_short_phase_is_silent_and_a_new_one_ends_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    writing.analysing()
    with writing.phase("writing"):
        assert writing._open == []
    writing.ended()
    assert screen.getvalue() == ""


def test_after_reading_a_terminal_is_told_that_the_graph_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_SHOWN_AFTER_S", 0.01)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with writing.progress("reading") as advance:
        assert advance is not None
        advance(0.5)
        advance(1.0)
        advance(1.0)
        until = time.monotonic() + PATIENCE_S
        while "building" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "building the graph" in screen.getvalue()


logger = logging.getLogger("htagraph.tests")


def test_what_is_logged_is_a_line_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("htagraph"), "filters", [])
    show_messages()
    show_messages()  # which shows nothing twice
    logger.info("compiling %s", "once")
    logger.warning("no place")
    logger.debug("details")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "htagraph: compiling once\nhtagraph: warning: no place\n"
