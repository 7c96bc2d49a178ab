"""Rows of an export read again: single events, and arguments that no column holds, by the keys of all formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError
from htagraph.core.tables import described
from htagraph.trace.columns import CHECKED, Facts, Trace
from htagraph.trace.kineto.events import Event, parse_event
from htagraph.trace.nsys.database import Database, opened
from htagraph.trace.nsys.names import collective, operator
from htagraph.trace.nsys.rows import NO_STREAM, SOURCES, payloads
from htagraph.trace.remote import TracePath, path_of

__all__ = ["arguments", "category_arguments", "check_arguments", "event", "metadata"]

_Row = Mapping[str, Any]
_RANGES: Final = "NVTX_EVENTS"


def _together(*columns: str) -> Callable[[_Row], list[Any] | None]:
    def several(row: _Row) -> list[Any] | None:
        values = [row.get(column) for column in columns]
        return None if None in values else values

    return several


def _sum(*columns: str) -> Callable[[_Row], int | None]:
    def total(row: _Row) -> int | None:
        values = [row.get(column) for column in columns]
        return (
            sum(each for each in values if isinstance(each, int)) if any(isinstance(v, int) for v in values) else None
        )

    return total


def _one(column: str) -> Callable[[_Row], Any]:
    return lambda row: row.get(column)


def _stream(row: _Row) -> Any:  # noqa: ANN401 - as in the file
    return -1 if row.get("streamId") == NO_STREAM else row.get("streamId")


def _rate(row: _Row) -> float | None:
    known = [row[column] for column in ("start", "end", "bytes") if isinstance(row.get(column), int)]
    return known[2] / (known[1] - known[0]) if len(known) == 3 and known[1] > known[0] else None


def _of_operator(key: str) -> Callable[[_Row], Any]:
    def said(row: _Row) -> Any:  # noqa: ANN401 - as in the file
        found = operator(row.get("text") or row.get("registered") or "")
        if found is None:
            return None
        if key == "Sequence number":
            return found.sequence if found.sequence >= 0 else None
        return json.loads(found.sizes) if found.sizes else None

    return said


_KEYS: Final[dict[str, tuple[tuple[str, ...], Callable[[_Row], Any]]]] = {
    "device": (("deviceId",), _one("deviceId")),
    "context": (("contextId",), _one("contextId")),
    "stream": (("streamId",), _stream),
    "correlation": (("correlationId",), _one("correlationId")),
    "graph id": (("graphId",), _one("graphId")),
    "graph node id": (("graphNodeId",), _one("graphNodeId")),
    "registers per thread": (("registersPerThread",), _one("registersPerThread")),
    "shared memory": (
        ("staticSharedMemory", "dynamicSharedMemory"), _sum("staticSharedMemory", "dynamicSharedMemory"),
    ),
    "grid": (("gridX", "gridY", "gridZ"), _together("gridX", "gridY", "gridZ")),
    "block": (("blockX", "blockY", "blockZ"), _together("blockX", "blockY", "blockZ")),
    "bytes": (("bytes",), _one("bytes")),
    "memory bandwidth (GB/s)": (("start", "end", "bytes"), _rate),
    "Sequence number": (("text", "textId"), _of_operator("Sequence number")),
    "Input Dims": (("text", "textId"), _of_operator("Input Dims")),
}  # fmt: skip
"""By key: the columns of a row that it is made of, and how. Columns without a key keep their own names."""
_OWN: Final = frozenset(
    {"start", "end", "nameId", "demangledName", "globalTid", "globalPid", "text", "textId", "registered"}
)
"""Columns that are times, names or lanes of an event."""


def _args(row: _Row) -> dict[str, Any]:
    """Return the arguments of a row: by the keys of all formats, and the row's other columns by their names."""
    made = {key: value for key, (_, make) in _KEYS.items() if (value := make(row)) is not None}
    used = {column for key, (columns, _) in _KEYS.items() if key in made for column in columns}
    return made | {column: value for column, value in row.items() if column not in used | _OWN}


def _place(database: Database, index: int) -> tuple[str, int]:
    """Return the table of an event and the position of its row."""
    for source in SOURCES:
        count = database.count(source.table)
        if index < count:
            return source.table, index
        index -= count
    msg = f"{database.path}: has no event {index}; was the file changed since it was loaded?"
    raise TraceError(msg)


def event(trace: Trace, index: int) -> Event:
    """Return the event at a position among all events of a file, with every column of its row as an argument."""
    with opened(trace.unchanged_path()) as database:
        table, number = _place(database, index)
        row = database.row(table, number)
        if isinstance(row.get("textId"), int):
            row["registered"] = next(iter(database.strings(np.array([row["textId"]])).values()), "")
        if table == _RANGES and (written := payloads(database, table)):
            row |= collective(written[number])
    at = np.flatnonzero(trace.events.index == index)
    raw: dict[str, Any] = {"ph": "X", "args": _args(row)}
    if len(at):
        table_of = trace.events
        pid, tid = trace.lanes[table_of.lane[at[0]]]
        raw |= {
            "name": trace.names[table_of.name[at[0]]], "cat": trace.categories[table_of.category[at[0]]],
            "pid": pid, "tid": tid, "dur": table_of.duration[at[0]] / 1000,
            "ts": (int(table_of.start[at[0]]) - trace.facts.origin_ns) / 1000,
        }  # fmt: skip
    return parse_event(raw)


def arguments(path: TracePath, names: Sequence[str], events: Array, *, as_text: bool) -> dict[str, Array]:
    """Return some arguments of some events, each as an array of objects; as JSON (bytes) if asked for."""
    out = {name: np.full(len(events), None, object) for name in names}
    known = [name for name in names if name in _KEYS]
    first = 0
    with opened(path) as database:
        for source in SOURCES:
            count = database.count(source.table)
            rows = np.flatnonzero((events >= first) & (events < first + count))
            some = [name for name in known if {*_KEYS[name][0]} & {*database.columns.get(source.table, ())}]
            if len(rows) and some:
                found = _of_rows(database, source.table, events[rows] - first, some)
                for name in some:
                    for row, values in zip(rows.tolist(), found, strict=True):
                        value = _KEYS[name][1](values)
                        out[name][row] = json.dumps(value).encode() if as_text and value is not None else value
            first += count
    return out


def _of_rows(database: Database, table: str, numbers: Array, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the columns that some arguments need, of the rows at some positions."""
    wanted = {column for name in names for column in _KEYS[name][0]}
    have = [column for column in database.columns[table] if column in wanted]
    quoted = ", ".join(f'"{column}"' for column in have)
    cells = database.rows(f'SELECT {quoted} FROM "{table}" NOT INDEXED')
    chosen = [dict(zip(have, cells[number], strict=True)) for number in numbers.tolist()]
    if "textId" in have:
        ids = np.array([row["textId"] for row in chosen if isinstance(row["textId"], int)], np.int64)
        texts = database.strings(ids)
        for row in chosen:
            row["registered"] = texts.get(row["textId"], "")
    return chosen


def category_arguments(path: TracePath, category: str | None = None) -> pd.DataFrame:
    """Return every argument of the events of a category, or of all: one row per event, indexed by its position."""
    first, found = 0, list[dict[str, Any]]()
    positions: list[int] = []
    with opened(path) as database:
        for source in SOURCES:
            count = database.count(source.table)
            if count and category in (None, *_CATEGORIES[source.table]):
                have = database.columns[source.table]
                cells = database.rows(f'SELECT * FROM "{source.table}" NOT INDEXED')
                rows = [{k: v for k, v in zip(have, row, strict=True) if v is not None} for row in cells]
                found += [_args(row) for row in rows]
                positions += range(first, first + count)
            first += count
    return pd.DataFrame(found, index=pd.Index(positions, dtype="int64", name="event"), dtype=object)


_HOST: Final = ("cuda_runtime", "cuda_driver"), ("cpu_op", "user_annotation", "nvtx_mark")
_CATEGORIES: Final = dict(zip([source.table for source in SOURCES], (
    ("kernel",), ("gpu_memcpy",), ("gpu_memset",), ("cuda_graph",), _HOST[0], ("cuda_sync",), _HOST[1],
    _HOST[1], _HOST[1], ("os_runtime", "os_runtime_beside"), ("overhead",), ("overhead",),
), strict=True))  # fmt: skip
"""The categories that rows of a table may have."""
_EXAMPLE: Final = 80
"""Characters of an example value. Chosen to fit a table; a longer limit makes the table wider, no count changes."""


@described(CHECKED)
def check_arguments(path: TracePath) -> pd.DataFrame:
    """Return every column of the tables of events, and how many of its values have another type than it declares.

    Returns:
        One row per table and column: {columns}.
    """
    rows = []
    with opened(path_of(path)) as database:
        for source in SOURCES:
            table, declared = source.table, dict(_declared(database, source.table))
            for column in database.columns.get(table, ()):
                events, wrong, example = _wrong(database, table, column, declared.get(column, ""))
                known = column in _OWN or any(column in columns for columns, _ in _KEYS.values())
                rows.append((_CATEGORIES[table][0], column, known, events, 0, wrong, example))
    return CHECKED.frame(rows).sort_values("category", kind="stable", ignore_index=True)


def _declared(database: Database, table: str) -> list[tuple[str, str]]:
    return [(row[1], str(row[2])) for row in database.rows(f'PRAGMA table_info("{table}")')]


def _wrong(database: Database, table: str, column: str, declared: str) -> tuple[int, int, str]:
    """Return (how many rows have a value, how many of another type than declared, the first of them)."""
    types = {"INTEGER": "integer", "INT": "integer", "REAL": "real", "TEXT": "text"}
    wanted, name = types.get(declared.upper(), ""), '"' + column.replace('"', '""') + '"'
    events = database.rows(f'SELECT count({name}) FROM "{table}"')[0][0]
    if not wanted:
        return events, 0, ""
    other = f"{name} IS NOT NULL AND typeof({name}) != '{wanted}'"
    number = database.rows(f'SELECT count(*) FROM "{table}" WHERE {other}')[0][0]
    first = database.rows(f'SELECT {name} FROM "{table}" WHERE {other} LIMIT 1') if number else []
    return events, number, repr(first[0][0])[:_EXAMPLE] if first else ""


def metadata(facts: Facts) -> dict[str, Any]:
    """Return what an export says of its recording, by the names of its tables."""
    return dict(facts.written)
