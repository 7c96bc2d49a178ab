"""What ``--format json`` prints, as types: the envelope of each command, and the JSON Schema made of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from htagraph.output.declared_tables import FIGURES, ISSUES, SENTENCES, TABLES
from htagraph.output.report import SCHEMA_VERSION

__all__ = ["ASKED", "COMMANDS", "envelope_model", "error_model", "json_schema"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[str, Any] = {
    "int": int, "number": float | None, "text": str, "flag": bool, "list": list[Any], "int|null": int | None,
    "text|null": str | None, "any": Any,
}  # fmt: skip
"""Types of declared columns. A number is null where there is none, such as a ratio to 0."""
_ON_WORKERS = " --scheduler"
"""What is behind the command in the declared tables of jobs on workers."""
_UNITS = {
    "_us": "µs", "_ns": "ns", "_percent": "percent", "_bytes": "bytes", "_gb_s": "GB/s (10^9 bytes per second)",
    "_ppm": "parts per million", "_gb": "GB (10^9 bytes)", "tflop_s": "TFLOP/s", "tokens_per_s": "tokens per second",
}  # fmt: skip
"""Units by the end of a column's name."""
ASKED = ("event", "jobs", "select")
"""What servers are asked; no verb of the command line."""
COMMANDS = tuple(sorted(TABLES))
"""Commands and questions to servers that have an envelope."""


def envelope_model(command: str, *, strict: bool = False) -> type[BaseModel]:
    """Return the type of what a command prints as JSON.

    Args:
        command: one of `COMMANDS`.
        strict: whether a key that is not declared is an error; else it is allowed, as later releases may add some.

    Raises:
        KeyError: there is no such command.

    Example:
        >>> sorted(envelope_model("opportunities").model_fields)[:4]
        ['command', 'counts', 'inputs', 'results']
    """
    return _envelope(command, strict=strict)


@cache
def _envelope(command: str, *, strict: bool) -> type[BaseModel]:
    title = f"htagraph: {command}" if command in ASKED else f"htagraph {command} --format json"
    config = ConfigDict(extra="forbid" if strict else "allow", title=title)
    rows: dict[str, Any] = {
        name: _table(command, name, columns, strict=strict) for name, columns in TABLES[command].items()
    }
    common: dict[str, Any] = {
        "schema_version": (Literal[SCHEMA_VERSION], ...), "tool": (Literal["htagraph"], ...),
        "command": (Literal[command.removesuffix(_ON_WORKERS)], ...),
    }  # fmt: skip
    if command == "validate":
        files = Field(description="Whether every file could be read.")
        return create_model(_name(command), __config__=config, **common, usable=(bool, files), **rows)
    figures: dict[str, Any] = {name: _field(name, kind) for name, kind in FIGURES.get(command, {}).items()}
    inputs = rows.pop("inputs")
    lines: dict[str, Any] = {SENTENCES.get(command, "conclusions"): (list[str], Field(description="What they mean."))}
    results = create_model(
        f"{_name(command)}Results", __config__=ConfigDict(extra="forbid" if strict else "allow"), **rows, **figures,
        **lines,
    )  # fmt: skip
    return create_model(
        _name(command), __config__=config, **common,
        tool_version=(str, ...),
        inputs=inputs,
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
    """Return the JSON Schema of what a command prints as JSON, or of all commands and of errors.

    Args:
        command: one of `COMMANDS`; None for any.

    Raises:
        KeyError: there is no such command.
    """
    if command is not None:
        return {"$schema": _DRAFT, **envelope_model(command).model_json_schema()}
    parts = [envelope_model(each).model_json_schema() for each in COMMANDS]
    parts.append(error_model().model_json_schema())
    shared = {name: part for each in parts for name, part in each.pop("$defs", {}).items()}
    return {"$schema": _DRAFT, "title": "htagraph --format json", "anyOf": parts, "$defs": shared}


def _name(command: str) -> str:
    return "".join(word.capitalize() for word in command.replace(" ", "-").split("-") if word)


def _table(command: str, name: str, columns: str, *, strict: bool) -> Any:  # noqa: ANN401 - what pydantic takes
    """Return the field of a table: a list of rows; None by default where a command does not always have it."""
    declared, always = columns.removeprefix("?").split(), not columns.startswith("?")
    fields: dict[str, Any] = {f"column_{i}": _column(*text.split(":")) for i, text in enumerate(declared)}
    row = create_model(
        f"{_name(command)}{_name(name.replace('_', '-'))}Row",
        __config__=ConfigDict(extra="forbid" if strict else "allow"), **fields,
    )  # fmt: skip
    return (list[row], ...) if always else (list[row], Field(default_factory=list))


def _column(name: str, kind: str) -> Any:  # noqa: ANN401 - what pydantic takes
    """Return the field of a column, whose name may be one that models have for themselves."""
    optional = name.endswith("?")
    name = name.removesuffix("?")
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)
    more: dict[str, Any] = {"default": None} if optional else {}
    return _TYPES[kind], Field(alias=name, description=unit, **more)


def _field(name: str, kind: str) -> Any:  # noqa: ANN401 - what pydantic takes
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)
    if kind.endswith("?"):
        return _TYPES[kind.removesuffix("?")], Field(default=None, description=unit)
    return _TYPES[kind], Field(description=unit)
