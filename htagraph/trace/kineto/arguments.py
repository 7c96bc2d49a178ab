"""Which arguments the events of a file have, and whether their values have the types of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from typing import Any, TypeAlias

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from htagraph.core.issues import IssueLog
from htagraph.trace.kineto.decode import event_decoder
from htagraph.trace.kineto.events import Event, canonical_category, parse_event
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.kineto.split import split
from htagraph.trace.remote import path_of

__all__ = ["check_arguments"]

_COLUMNS = {
    "category": "str", "argument": "str", "known": "bool", "events": "int64", "converted": "int64", "wrong": "int64",
    "example": "str",
}  # fmt: skip
_EXAMPLE_LENGTH = 80
"""Characters of an example value. Chosen to fit a table; a longer limit makes the table wider, no count changes."""
_Kind: TypeAlias = tuple[str, str | None, str]
"""(phase, category, name of an instant event): what decides the model of an event."""


@dataclass
class _Tally:
    """Counts for one argument of one category."""

    known: bool
    events: int = 0
    converted: int = 0
    wrong: int = 0
    example: str = field(default="")


def check_arguments(path: str | PathLike[str]) -> pd.DataFrame:
    """Return every argument that the events of a file have, and how many of its values are not of its type.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.

    Returns:
        One row per category and argument, sorted by category, then by first appearance: ``category`` (str: today's
        name; the phase of events without a category), ``argument`` (str: its key), ``known`` (bool: True if the schema
        of `htagraph.trace.kineto.events` has it; unknown arguments are kept all the same), ``events`` (int64: events
        that have it), ``converted`` (int64: values of another type that can be converted, such as numbers in quotes,
        and nulls), ``wrong`` (int64: values that cannot be converted), ``example`` (str: the first wrong value, else
        the first converted one).

    Raises:
        TraceError: the file cannot be read.

    Example:
        >>> table = check_arguments("data/demo/rank-0.json.gz")
        >>> int(table["wrong"].sum())
        0

    Source: HTA's validate_trace_format.
    """
    tallies: dict[tuple[str, str], _Tally] = {}
    log = IssueLog(str(path))
    for _, events in split(iter_bytes(path_of(path), log), event_decoder(), {}, log):
        values: dict[_Kind, dict[str, list[Any]]] = {}
        for event in events:
            for key, value in (event.get("args") or {}).items():
                values.setdefault(_kind(event), {}).setdefault(key, []).append(value)
        for kind, arguments in values.items():
            for key, written in arguments.items():
                _check(tallies, kind, key, written)
    rows = [(*key, t.known, t.events, t.converted, t.wrong, t.example) for key, t in tallies.items()]
    table = pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
    return table.sort_values("category", kind="stable", ignore_index=True)


def _kind(event: Mapping[str, Any]) -> _Kind:
    """Return the (phase, category, name of an instant event) that decide an event's model."""
    phase, category = str(event.get("ph")), event.get("cat")
    name = str(event.get("name")).partition(":")[0] if phase in ("i", "I") else ""
    return phase, None if category is None else str(category), name


def _check(tallies: dict[tuple[str, str], _Tally], kind: _Kind, key: str, values: list[Any]) -> None:
    """Count the values of one argument of one kind of event."""
    phase, category, name = kind
    adapter = _adapters(kind).get(key)
    label = canonical_category(category) if category else name or f"phase {phase}"
    tally = tallies.setdefault((label, key), _Tally(known=adapter is not None))
    tally.events += len(values)
    if adapter is None:
        return
    try:
        parsed, wrong = adapter.validate_python(values), []
    except ValidationError as error:
        places = {int(problem["loc"][0]) for problem in error.errors(include_url=False)}
        wrong = [values[place] for place in sorted(places)]
        values = [value for place, value in enumerate(values) if place not in places]
        parsed = adapter.validate_python(values)
    converted = [value for value, result in zip(values, parsed, strict=True) if _is_converted(value, result)]
    if wrong and not tally.wrong:
        tally.example = _text(wrong[0])
    elif converted and not tally.example:
        tally.example = _text(converted[0])
    tally.wrong += len(wrong)
    tally.converted += len(converted)


def _is_converted(value: object, result: object) -> bool:
    """Return True if a value was null, or had to be converted from text to number or from number to text."""
    return value is None or isinstance(value, str) != isinstance(result, str)


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _EXAMPLE_LENGTH else text[: _EXAMPLE_LENGTH - 1] + "…"


@cache
def _adapters(kind: _Kind) -> dict[str, TypeAdapter[list[Any]]]:
    """Return, for each argument of a kind of event, a validator of lists of its values."""
    phase, category, name = kind
    raw = {"ph": phase, "name": name} | ({} if category is None else {"cat": category})
    model: type[Event] = type(parse_event(raw))
    several: Any = list
    fields = getattr(model.model_fields["args"].annotation, "model_fields", {})
    return {
        str(key): TypeAdapter(several[each.annotation])
        for each in fields.values()
        for key in getattr(each.validation_alias, "choices", ())
    }
