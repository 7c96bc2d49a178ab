"""Verbs are imported when they are asked for; a row names a report that takes the options of the verb."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pkgutil import resolve_name
from typing import Any

import pytest
import typer

from htagraph.cli import main as cli
from htagraph.cli.verbs import FORMER, QUESTIONS, VERBS, Verbs
from tests.reach import DATA

DEMO = str(DATA / "demo")

GROUP: Any = typer.main.get_command(cli.app)


def test_the_help_has_every_verb_in_a_group() -> None:
    group = Verbs(commands={})
    shown = group.list_commands(None)  # type: ignore[arg-type]
    assert sorted(shown) == sorted(VERBS)
    panels = [vars(group.commands[verb])["rich_help_panel"] for verb in shown]
    assert list(dict.fromkeys(panels)) == ["Begin", "Why", "What if", "Compare", "Files", "The rest"]
    assert panels == sorted(panels, key=panels.index)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in QUESTIONS])
def test_a_verb_that_is_no_row_is_a_function_of_the_module_that_is_named(verb: str) -> None:
    module = importlib.import_module(f"htagraph.cli.{VERBS[verb]}")
    assert verb.replace("-", "_") in module.__all__


def test_each_verb_is_the_command_of_its_name() -> None:
    assert isinstance(GROUP, Verbs)
    assert {name: command.name for name, command in GROUP.commands.items()} == {name: name for name in GROUP.commands}
    assert GROUP.get_command(typer.Context(GROUP), "sumary") is None


@pytest.mark.parametrize(("verb", "absent"), [("jobs", "what_if"), ("others", "jobs")])
def test_a_verb_imports_no_other(verb: str, absent: str) -> None:
    code = (
        "import sys; from htagraph.cli import main as cli; import typer; "
        f"typer.main.get_command(cli.app).commands[{next(name for name, each in VERBS.items() if each == verb)!r}]; "
        f"print(*(each in sys.modules for each in ('htagraph.cli.{verb}', 'htagraph.cli.{absent}', 'numba')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False", "False"]


def test_help_shows_no_type_of_flags_and_paragraphs_as_wide_as_the_terminal(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["--help"], ["what-if", "--help"], ["cache", "info", "--help"]):
        assert "<bool>" not in run(*words).out
    assert "step_index (-1 is the last), backward_of," in run("what-if", "--help").out  # lines apart in the source


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_row_names_a_report_that_takes_its_options(name: str) -> None:
    row = QUESTIONS[name]
    taken = inspect.signature(resolve_name(f"htagraph.output.{row.report}")).parameters
    assert {"graph", "inputs", "top", *row.options, *row.last} == set(taken)
    assert taken["top"].default == row.top
    if row.on_workers:
        assert list(inspect.signature(resolve_name(f"htagraph.output.{row.on_workers}")).parameters) == ["job", "top"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_option_has_the_default_that_its_report_has(name: str) -> None:
    row = QUESTIONS[name]
    taken = inspect.signature(resolve_name(f"htagraph.output.{row.report}")).parameters
    assert all(taken[option].default == default for option, default in {**row.options, **row.last}.items())
    assert next(iter(row.defaults)) == "paths"


@pytest.mark.parametrize("form", ["table", "json", "md"])
@pytest.mark.parametrize("name", FORMER)
def test_a_former_name_gives_what_its_words_give(name: str, form: str, run: Any) -> None:
    verb, *options = FORMER[name]
    jobs = [str(DATA / "demo")] * (2 if verb == "diff" else 1)
    former = run(name, *jobs, "--top", "3", "-f", form)
    assert (former.code, former.err) == (0, "")
    assert former.out == run(verb, *options, *jobs, "--top", "3", "-f", form).out


def test_no_help_lists_a_former_name_and_its_schema_is_that_of_its_verb(run: Any) -> None:
    assert FORMER.keys().isdisjoint(VERBS)
    assert {words[0] for words in FORMER.values()} <= VERBS.keys()
    shown = run("--help").out.split()
    for name, (verb, *_) in FORMER.items():
        assert name not in shown
        assert run("schema", name).out == run("schema", verb).out


def test_names_alone_have_a_device_and_no_limits(run: Any) -> None:
    jobs = [str(DATA / "demo")] * 2
    for words, option in ((["--names", "--fail-on", "step_time>+5%"], "--names"), (["--device", "host"], "--device")):
        ran = run("diff", *jobs, *words)
        assert ran.code == 2
        assert option in ran.err


@pytest.mark.parametrize("verb", ["stragglers", "summary"])
def test_workers_may_read_the_ranks(verb: str, run: Any) -> None:
    ran = run(verb, DATA / "demo", "--scheduler", "nobody")
    assert ran.code == 2
    assert "--scheduler" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kernels", "x", "--by", "operater"], "did you mean 'operator'?"),
        (["kernels", "x", "--format", "cvs"], "did you mean 'csv'?"),
        (["event", "x"], "htagraph mcp answers it"),
        (["plot", DEMO], f"htagraph plot idle_breakdown {DEMO} -o idle_breakdown.html"),
        (["plot", "idle_breakdown", "x"], "htagraph plot idle_breakdown x -o idle_breakdown.html"),
        (["what-if", "x", "--scale", "aten::mm:0.5"], "did you mean op=aten::mm"),
        (["summary", DEMO[:-1]], f"did you mean {DEMO}?"),
    ],
)
def test_an_error_says_the_word_or_the_command_that_was_meant(words: list[str], said: str, run: Any) -> None:
    ran = run(*words)
    assert ran.code in (1, 2)
    told = "".join(ran.err.replace("│", " ").split())  # lines break anywhere
    assert "".join(said.split()) in told
    assert "Valueerror" not in told
