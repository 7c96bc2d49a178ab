"""Verbs are imported when they are asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest
import typer

from htagraph.cli import main as cli
from htagraph.cli.questions import QUESTIONS
from htagraph.cli.verbs import MODULES, Verbs

GROUP: Any = typer.main.get_command(cli.app)


def test_every_verb_is_a_function_or_a_row_of_the_module_that_is_named() -> None:
    assert isinstance(GROUP, Verbs)
    for verb, name in MODULES.items():
        module = importlib.import_module(f"htagraph.cli.{name}")
        assert verb in QUESTIONS if name == "questions" else verb.replace("-", "_") in [*module.__all__], verb
    assert {verb for verb, name in MODULES.items() if name == "questions"} == set(QUESTIONS)


def test_each_verb_is_the_command_of_its_name() -> None:
    assert {name: command.name for name, command in GROUP.commands.items()} == {name: name for name in GROUP.commands}
    assert GROUP.get_command(None, "sumary") is None


@pytest.mark.parametrize(("verb", "absent"), [("jobs", "what_if"), ("others", "jobs")])
def test_a_verb_imports_no_other(verb: str, absent: str) -> None:
    code = (
        "import sys; from htagraph.cli import main as cli; import typer; "
        f"typer.main.get_command(cli.app).commands[{next(v for v, m in MODULES.items() if m == verb)!r}]; "
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
