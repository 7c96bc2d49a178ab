"""Verbs are imported when they are asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from typing import Any

import pytest
import typer

import htagraph.cli
from htagraph.cli import main as cli
from htagraph.cli.verbs import Verbs

GROUP: Any = typer.main.get_command(cli.app)


def test_every_module_named_as_what_it_holds_is_a_verb() -> None:
    names = [module.name for module in pkgutil.iter_modules(htagraph.cli.__path__)]
    holding = {
        name.replace("_", "-")
        for name in names
        if name != "main" and hasattr(importlib.import_module(f"htagraph.cli.{name}"), name)
    }
    assert isinstance(GROUP, Verbs)
    assert set(GROUP.commands) == holding


def test_each_verb_is_the_command_of_its_name() -> None:
    assert {name: command.name for name, command in GROUP.commands.items()} == {name: name for name in GROUP.commands}
    assert GROUP.get_command(None, "sumary") is None


@pytest.mark.parametrize(("verb", "absent"), [("summary", "what_if"), ("cache", "summary")])
def test_a_verb_imports_no_other(verb: str, absent: str) -> None:
    code = (
        "import sys; from htagraph.cli import main as cli; import typer; "
        f"typer.main.get_command(cli.app).commands[{verb!r}]; "
        f"print('htagraph.cli.{verb}' in sys.modules, 'htagraph.cli.{absent}' in sys.modules, 'numba' in sys.modules)"
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
