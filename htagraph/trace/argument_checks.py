"""Which arguments the events of a file have, and whether their values are what the schema says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from htagraph.core.issues import IssueLog
from htagraph.trace.events import Event, canonical_category, parse_event
from htagraph.trace.reading.decode import event_decoder
from htagraph.trace.reading.source import iter_bytes
from htagraph.trace.reading.split import split

__all__ = ["check_arguments"]

_COLUMNS = {
    "category": "str", "argument": "str", "known": "bool", "events": "int64", "converted": "int64", "wrong": "int64",
    "example": "str",
}  # fmt: skip
_EXAMPLE_LENGTH = 80
_Kind: TypeAlias = tuple[str, str | None, str]


@dataclass
class _Seen:
    """What was found of one argument of one category."""

    known: bool
    events: int = 0
    converted: int = 0
    wrong: int = 0
    example: str = field(default="")


def check_arguments(path: str | Path) -> pd.DataFrame:
    """Return every argument that the events of a file have, and how many of its values are not of its type.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.

    Returns:
        One row per category and argument, by category and in the order of first appearance: ``category`` (str: as named
        today, of events without one their phase), ``argument`` (str: its key), ``known`` (bool: whether the schema of
        `htagraph.trace.events` has it; what it does not have is kept all the same), ``events`` (int64: that have it),
        ``converted`` (int64: values of another type that can be read as what they should be, such as numbers in
        quotes, or are null), ``wrong`` (int64: values that cannot), ``example`` (str: the first wrong value, else the
        first converted one).

    Raises:
        TraceError: the file cannot be read.

    Example:
        >>> table = check_arguments("data/demo/rank-0.json.gz")
        >>> int(table["wrong"].sum())
        0

    Source: HTA's validate_trace_format.
    """
    seen: dict[tuple[str, str], _Seen] = {}
    log = IssueLog(str(path))
    for _, events in split(iter_bytes(Path(path), log), event_decoder(), {}, log):
        values: dict[_Kind, dict[str, list[Any]]] = {}
        for event in events:
            for key, value in (event.get("args") or {}).items():
                values.setdefault(_kind(event), {}).setdefault(key, []).append(value)
        for kind, arguments in values.items():
            for key, found in arguments.items():
                _check(seen, kind, key, found)
    rows = [(*key, each.known, each.events, each.converted, each.wrong, each.example) for key, each in seen.items()]
    table = pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
    return table.sort_values("category", kind="stable", ignore_index=True)


def _kind(event: Mapping[str, Any]) -> _Kind:
    """Return what decides the model of an event: phase, category, and of instants the name."""
    phase, category = str(event.get("ph")), event.get("cat")
    name = str(event.get("name")).partition(":")[0] if phase in ("i", "I") else ""
    return phase, None if category is None else str(category), name


def _check(seen: dict[tuple[str, str], _Seen], kind: _Kind, key: str, values: list[Any]) -> None:
    phase, category, name = kind
    adapter = _adapters(kind).get(key)
    label = canonical_category(category) if category else name or f"phase {phase}"
    mine = seen.setdefault((label, key), _Seen(known=adapter is not None))
    mine.events += len(values)
    if adapter is None:
        return
    try:
        read, wrong = adapter.validate_python(values), []
    except ValidationError as error:
        places = {int(each["loc"][0]) for each in error.errors(include_url=False)}
        wrong = [values[place] for place in sorted(places)]
        values = [value for place, value in enumerate(values) if place not in places]
        read = adapter.validate_python(values)
    converted = [value for value, made in zip(values, read, strict=True) if _differs(value, made)]
    if wrong and not mine.wrong:
        mine.example = _text(wrong[0])
    elif converted and not mine.example:
        mine.example = _text(converted[0])
    mine.wrong += len(wrong)
    mine.converted += len(converted)


def _differs(value: object, made: object) -> bool:
    """Return whether a value had to become another type: a text a number, a number a text, or it is null."""
    return value is None or isinstance(value, str) != isinstance(made, str)


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _EXAMPLE_LENGTH else text[: _EXAMPLE_LENGTH - 1] + "…"


@cache
def _adapters(kind: _Kind) -> dict[str, TypeAdapter[list[Any]]]:
    """Return what reads lists of values, by key of the arguments of a kind of event."""
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
