"""Names and streams of device work, read from arguments first.

PyTorch's CUPTI backend (`torch/profiler/_cupti`, 2.14) writes bare names of copies with the direction as arguments, and
shows nodes of CUDA graphs on logical lanes with the stream that ran them as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.transfers import copy_name, fill_name
from htagraph.trace.columns import Events, Interner, SparseColumn

__all__ = ["with_meaning_of_arguments"]

_COPY: Final = (
    "copy_direction",
    "source_memory",
    "target_memory",
)
_FILL: Final = ("filled_memory",)
_STREAM: Final = "stream"
_RECORDED_STREAM: Final = "original_stream"


def with_meaning_of_arguments(table: Events, names: Interner[str]) -> Events:
    """Return the events with usual names of copies and memsets, and with the streams that ran them.

    The arguments that say so are then no columns of their own; the file still has them.
    """
    if not table.args.keys() & {
        *_COPY,
        *_FILL,
        _RECORDED_STREAM,
    }:
        return table
    table = _renamed(table, names, _COPY, copy_name)
    table = _renamed(table, names, _FILL, fill_name)
    args = dict(table.args)
    recorded = args.pop(_RECORDED_STREAM, None)
    if recorded is not None:
        args[_STREAM] = _over(args.get(_STREAM), recorded, len(table))
    remaining = {column: values for column, values in args.items() if column not in (*_COPY, *_FILL)}
    return replace(table, args=remaining)


def _over(
    shown: SparseColumn | None,
    recorded: SparseColumn,
    count: int,
) -> SparseColumn:
    """Return the values of `recorded`, and the values of `shown` for rows that `recorded` lacks."""
    if shown is None:
        return recorded
    values = shown.dense(count)
    values[recorded.rows] = recorded.values
    rows = np.flatnonzero(values != shown.missing).astype(np.int32)
    return SparseColumn(rows, values[rows], shown.missing)


def _renamed(
    table: Events,
    names: Interner[str],
    columns: tuple[str, ...],
    name_of: Callable[..., str],
) -> Events:
    """Return the table with the name that a function makes of a name and of texts in columns."""
    present = [column for column in columns if column in table.args]
    if not present:
        return table
    rows = np.unique(np.concatenate([table.args[column].rows for column in present]))
    texts = [_codes(table, column, rows) for column in columns]
    combinations, member = np.unique(
        np.stack([table.name[rows], *texts]),
        axis=1,
        return_inverse=True,
    )
    written = list(names)
    renamed = [names[name_of(*(_text(written, code) for code in codes))] for codes in combinations.T.tolist()]
    name = table.name.copy()
    name[rows] = np.array(renamed, np.int32)[member.ravel()]
    return replace(table, name=name)


def _codes(table: Events, column: str, rows: Array) -> Array:
    """Return a column's indices into names for some rows; -1 where the column or the value is absent."""
    values = table.args.get(column)
    return np.full(len(rows), -1, np.int32) if values is None else values.dense(len(table))[rows]


def _text(names: list[str], code: int) -> str:
    return names[code] if code >= 0 else ""
