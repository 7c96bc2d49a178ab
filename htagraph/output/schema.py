"""What ``--format json`` prints, as types: the envelope of each command, and the JSON Schema made of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from htagraph.core.tables import Table, unit_of
from htagraph.output import summary, validation  # noqa: F401 - declare
from htagraph.output.report import CONTENTS, SCHEMA_VERSION
from htagraph.output.reports import activities, changes, device_time, files, queues, ranks, two_jobs, workers  # noqa: F401 - declare
from htagraph.queries.inputs import INPUTS, ISSUES

__all__ = ["ASKED", "COMMANDS", "envelope_model", "error_model", "json_schema"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[str, Any] = {
    "int64": int, "uint64": int, "float64": float | None, "str": str, "bool": bool, "list": list[Any],
    "int64?": int | None, "any": Any,
}  # fmt: skip
"""Types of declared columns. A number is null where there is none, such as a ratio to 0."""
_ON_WORKERS = " --scheduler"
"""What is behind the command in the declared contents of jobs on workers."""
ASKED = ("event", "jobs", "select")
"""What servers are asked; no verb of the command line."""
COMMANDS = tuple(sorted(CONTENTS))
"""Commands and questions to servers that have an envelope."""


@cache
def envelope_model(command: str, *, strict: bool = False) -> type[BaseModel]:
    """Return the type of what a command prints as JSON.

    Example:
        >>> sorted(envelope_model("plan").model_fields)[:4]
        ['command', 'counts', 'inputs', 'results']
    """
    title = f"htagraph: {command}" if command in ASKED else f"htagraph {command} --format json"
    config = ConfigDict(extra="forbid" if strict else "allow", title=title)
    contents = CONTENTS[command]
    rows: dict[str, Any] = {
        name: _table(command, name, table, strict=strict, always=name not in contents.maybe)
        for name, table in contents.tables.items()
    }
    common: dict[str, Any] = {
        "schema_version": (Literal[SCHEMA_VERSION], ...), "tool": (Literal["htagraph"], ...),
        "command": (Literal[command.removesuffix(_ON_WORKERS)], ...),
    }  # fmt: skip
    if command == "validate":
        files = Field(description="Whether every file could be read.")
        return create_model(_name(command), __config__=config, **common, usable=(bool, files), **rows)
    figures: dict[str, Any] = {
        name: _field(name, kind, always=name not in figure.maybe)
        for figure in [Table("", *contents.figures)]
        for name, kind in figure.types.items()
    }
    lines: dict[str, Any] = {contents.sentences: (list[str], Field(description="What they mean."))}
    results = create_model(
        f"{_name(command)}Results", __config__=ConfigDict(extra="forbid" if strict else "allow"), **rows, **figures,
        **lines,
    )  # fmt: skip
    return create_model(
        _name(command), __config__=config, **common,
        tool_version=(str, ...),
        inputs=_table(command, "inputs", INPUTS, strict=strict),
        window_us=(float, Field(description="From the first to the last moment of any rank, µs.")),
        warnings=_table(command, "warnings", ISSUES, strict=strict),
        counts=(dict[str, int], Field(description="Sums of the warnings' counts by what they say.")),
        results=(results, ...),
    )  # fmt: skip


@cache
def error_model() -> type[BaseModel]:
    """Return the type of what a command prints as JSON where it fails."""
    error = create_model(
        "Error", __config__=ConfigDict(extra="forbid"), message=(str, ...), file=(str | None, ...),
        hint=(str | None, ...), exit_code=(int, ...),
    )  # fmt: skip
    fields: dict[str, Any] = {
        "schema_version": (Literal[SCHEMA_VERSION], ...), "tool": (Literal["htagraph"], ...),
        "tool_version": (str, ...), "command": (str | None, ...), "error": (error, ...),
    }  # fmt: skip
    config = ConfigDict(extra="forbid", title="htagraph: a command that failed")
    return create_model("Failure", __config__=config, **fields)


def json_schema(command: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints as JSON, or of all commands and of errors."""
    if command is not None:
        return {"$schema": _DRAFT, **envelope_model(command).model_json_schema()}
    parts = [envelope_model(each).model_json_schema() for each in COMMANDS]
    parts.append(error_model().model_json_schema())
    shared = {name: part for each in parts for name, part in each.pop("$defs", {}).items()}
    return {"$schema": _DRAFT, "title": "htagraph --format json", "anyOf": parts, "$defs": shared}


def _name(command: str) -> str:
    return "".join(word.capitalize() for word in command.replace(" ", "-").split("-") if word)


def _table(command: str, name: str, table: Table, *, strict: bool, always: bool = True) -> Any:  # noqa: ANN401 - what pydantic takes
    """Return the field of a table: a list of rows; none by default where a command does not always have it."""
    fields: dict[str, Any] = {
        f"column_{i}": _field(column, kind, always=column not in table.maybe, alias=column)
        for i, (column, kind) in enumerate(table.types.items())
    }
    row = create_model(
        f"{_name(command)}{_name(name.replace('_', '-'))}Row",
        __config__=ConfigDict(extra="forbid" if strict else "allow"), **fields,
    )  # fmt: skip
    return (list[row], ...) if always else (list[row], Field(default_factory=list))


def _field(name: str, kind: str, *, always: bool, **more: Any) -> Any:  # noqa: ANN401 - what pydantic takes
    """Return the field of a column or a single result; ``alias`` is a name that models may have for themselves."""
    more |= {} if always else {"default": None}
    return _TYPES[kind], Field(description=unit_of(name), **more)
