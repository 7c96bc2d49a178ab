"""Rows of an export read again: single events, and arguments that no column holds, by the keys of all formats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError, shown
from htagraph.core.tables import described
from htagraph.trace.columns import CHECKED, SAMPLES, Facts, Trace
from htagraph.trace.kineto.events import Event, parse_event
from htagraph.trace.nsys.database import Database, opened, quoted
from htagraph.trace.nsys.names import collective, operator
from htagraph.trace.nsys.rows import NO_STREAM, SOURCES, Source
from htagraph.trace.remote import TracePath, path_of

__all__ = ["arguments", "category_arguments", "check_arguments", "event", "metadata", "samples"]

_TEXT: Final = "COALESCE(NULLIF(text, ''), (SELECT value FROM StringIds WHERE id = textId))"
_KEYS: Final = {
    "device": "deviceId",
    "context": "contextId",
    "stream": f"CASE streamId WHEN {NO_STREAM} THEN -1 ELSE streamId END",
    "correlation": "correlationId",
    "graph id": "graphId",
    "graph node id": "graphNodeId",
    "registers per thread": "registersPerThread",
    "shared memory": "staticSharedMemory + dynamicSharedMemory",
    "grid": "'[' || gridX || ', ' || gridY || ', ' || gridZ || ']'",
    "block": "'[' || blockX || ', ' || blockY || ', ' || blockZ || ']'",
    "bytes": "bytes",
    "memory bandwidth (GB/s)": "1.0 * bytes / NULLIF(end - start, 0)",
    "Sequence number": _TEXT,
    "Input Dims": _TEXT,
    "payload": "jsonText",
}
"""By key: what a row's value is in SQL, in which only names of columns have small letters; columns without a key keep
their own names."""
_COLUMN: Final = re.compile(r"\b[a-z]\w+", re.ASCII)
_OWN: Final = frozenset({"start", "end", "nameId", "demangledName", "globalTid", "globalPid", "textId", "value", "id"})
"""Columns that are times, names or lanes of an event, and those of the table of strings."""


def _columns_of(key: str) -> set[str]:
    return {*_COLUMN.findall(_KEYS[key])}


def _known(database: Database, table: str, names: Sequence[str]) -> list[str]:
    have = {*database.columns.get(table, ())} | ({"value", "id"} if "StringIds" in database.columns else set())
    return [name for name in names if name in _KEYS and _columns_of(name) <= have]


def _values(database: Database, table: str, keys: Sequence[str], which: str = "") -> Iterator[list[Any]]:
    """Yield the values of keys, or of columns, for each row of a table, None where it lacks one."""
    cells = ["0", *(_KEYS[key].replace("end", '"end"') if key in _KEYS else quoted(key) for key in keys)]
    for _, *row in database.rows(f"SELECT {', '.join(cells)} FROM {quoted(table)} NOT INDEXED {which}"):
        yield [None if cell is None else _value(key, cell) for key, cell in zip(keys, row, strict=True)]


def _value(key: str, cell: Any) -> Any:  # noqa: ANN401 - as in the file
    if key in ("grid", "block"):
        return json.loads(cell)
    if key not in ("Sequence number", "Input Dims"):
        return cell
    found = operator(str(cell))
    if key == "Input Dims":
        return json.loads(found.sizes) if found and found.sizes else None
    return found.sequence if found and found.sequence >= 0 else None


def _tables(database: Database) -> Iterator[tuple[Source, int, int]]:
    """Yield each table with the number of its first event and its number of rows."""
    first = 0
    for source in SOURCES:
        count = database.count(source.table)
        yield source, first, count
        first += count


def _all(database: Database, table: str, which: str = "") -> list[dict[str, Any]]:
    keys = _known(database, table, [*_KEYS])
    used = _OWN.union(_KEYS, *map(_columns_of, keys))
    keys += [column for column in database.columns[table] if column not in used]
    found = _values(database, table, keys, which)
    return [{key: each for key, each in zip(keys, row, strict=True) if each is not None} for row in found]


def event(trace: Trace, index: int) -> Event:
    """Return the event at a position among all events of a file, with every column of its row as an argument."""
    with opened(trace.unchanged_path()) as database:
        for source, first, count in _tables(database):
            if first <= index < first + count:
                return parse_event(_raw(database, source, index - first))
        msg = f"{database.path}: has no event {index}; was the file changed since it was loaded?"
        raise TraceError(msg)


def _raw(database: Database, source: Source, number: int) -> dict[str, Any]:
    """Return a row of a table as an event, with the times of the file, µs."""
    which = f"LIMIT 1 OFFSET {number}"
    args = _all(database, source.table, which)[0]
    row = f"WHERE rowid = (SELECT rowid FROM {quoted(source.table)} NOT INDEXED {which})"
    rows = source.read(database, source.table, row)
    names, kinds = [*rows.names, ""], [*source.categories, ""]
    start, end = int(rows.start[0]), int(rows.end[0])
    raw = {"ph": "X", "name": names[rows.name[0]], "cat": kinds[rows.category[0]], "ts": start / 1000}
    lane = {"pid": int(rows.lane[0][0]), "tid": int(rows.lane[1][0])}
    return raw | lane | {"dur": (end - start) / 1000, "args": args | collective(str(args.get("payload", "")))}


def arguments(path: TracePath, names: Sequence[str], events: Array, *, as_text: bool) -> dict[str, Array]:
    """Return some arguments of some events, each as an array of objects; as JSON (bytes) if asked for."""
    out = {name: np.full(len(events), None, object) for name in names}
    with opened(path) as database:
        for source, first, count in _tables(database):
            rows = np.flatnonzero((events >= first) & (events < first + count))
            keys = _known(database, source.table, names) if len(rows) else []
            found = list(_values(database, source.table, keys)) if keys else []
            for row in rows.tolist() if keys else ():
                for key, value in zip(keys, found[events[row] - first], strict=True):
                    out[key][row] = json.dumps(value).encode() if as_text and value is not None else value
    return out


def samples(trace: Trace) -> pd.DataFrame:
    """Return no samples: metrics of devices (``GPU_METRICS``) are not read of these exports."""
    return SAMPLES.frame(())


def category_arguments(path: TracePath, category: str | None = None) -> pd.DataFrame:
    """Return every argument of the events of a category, or of all: one row per event, indexed by its position.

    The rows are those of all tables that may hold the category.
    """
    found, positions = list[dict[str, Any]](), list[int]()
    with opened(path) as database:
        for source, first, count in _tables(database):
            if count and category in (None, *source.categories):
                found += _all(database, source.table)
                positions += range(first, first + count)
    return pd.DataFrame(found, index=pd.Index(positions, dtype="int64", name="event"), dtype=object)


@described(CHECKED)
def check_arguments(path: TracePath) -> pd.DataFrame:
    """Return every column of the tables of events, and how many of its values have another type than it declares.

    Returns:
        One row per table and column: {columns}.
    """
    rows, known = [], _OWN.union(*map(_columns_of, _KEYS))
    types = {"INTEGER": "integer", "INT": "integer", "REAL": "real", "TEXT": "text"}
    with opened(path_of(path)) as database:
        for source, _, count in _tables(database):
            table = quoted(source.table)
            for _, column, declared, *_ in database.rows(f"PRAGMA table_info({table})") if count else ():
                kind, name = types.get(str(declared).upper(), "any"), quoted(column)
                other = f"'{kind}' != 'any' AND typeof({name}) NOT IN ('{kind}', 'null')"
                query = f"SELECT count({name}), sum({other}), max(CASE WHEN {other} THEN {name} END) FROM {table}"
                events, wrong, example = database.rows(query)[0]
                told = "" if example is None else shown(example)
                rows.append((source.categories[0], column, column in known, events, 0, wrong, told))
    return CHECKED.frame(rows).sort_values("category", kind="stable", ignore_index=True)


def metadata(facts: Facts) -> dict[str, Any]:
    """Return what an export says of its recording, by the names of its tables."""
    return dict(facts.written)
