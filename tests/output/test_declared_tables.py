"""Declared tables are well-formed, and those of commands."""

from __future__ import annotations

import re

import pytest
import typer

from htagraph.cli import main as cli
from htagraph.output.declared_tables import FIGURES, ISSUES, SENTENCES, TABLES
from htagraph.output.schema import ASKED

KINDS = "int|number|text|flag|list|any"
COLUMN = re.compile(rf"[a-z]\w*\??:({KINDS})(\|null)?")


@pytest.mark.parametrize("command", TABLES)
def test_every_column_has_a_type_and_occurs_once(command: str) -> None:
    for columns in (*TABLES[command].values(), ISSUES):
        every = columns.removeprefix("?").split()
        assert [each for each in every if not COLUMN.fullmatch(each)] == []
        names = [each.partition(":")[0].rstrip("?") for each in every]
        assert len(names) == len(set(names))


def test_each_is_of_a_command() -> None:
    group = typer.main.get_command(cli.app)
    known = set(group.commands)  # type: ignore[attr-defined] # of a group
    assert {command.split()[0] for command in TABLES} <= known | set(ASKED)
    assert {*FIGURES, *SENTENCES} <= set(TABLES)
