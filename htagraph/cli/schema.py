"""``htagraph schema``: the JSON Schema of what commands print with ``--format json``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from htagraph.cli.writing import emit, target

__all__ = ["schema"]


def schema(
    command: Annotated[
        str | None, typer.Argument(metavar="COMMAND", help="A command, such as summary; default: all.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Print the JSON Schema (2020-12) of what a command prints with --format json; without a command, of all.

    Also of `event`, `select` and `jobs`, which serve and mcp answer.
    """
    from htagraph.core.words import nearest_words
    from htagraph.output.schema import COMMANDS, json_schema

    if command is not None and command not in COMMANDS:
        msg = f"{command!r} prints no JSON: choose from {', '.join(COMMANDS)}{nearest_words(command, COMMANDS)}"
        raise typer.BadParameter(msg, param_hint="COMMAND")
    emit(json.dumps(json_schema(command), indent=2) + "\n", None if output is None else target(output), [])
