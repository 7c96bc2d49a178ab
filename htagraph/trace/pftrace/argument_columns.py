"""Arguments of events → the columns that Kineto's schema has for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.trace.kineto.collecting import Columns, fields_of, typed
from htagraph.trace.kineto.events import HOST_BACKENDS, HOST_CALLS, BulkField
from htagraph.trace.kineto.events import call_columns as _call_fields
from htagraph.trace.kineto.events import columns as _fields
from htagraph.trace.pftrace import scan
from htagraph.trace.pftrace.events import PacketEvents
from htagraph.trace.pftrace.messages import UnreadableError, argument_of

__all__ = [
    "KEY_OF",
    "WANTED",
    "add_arguments",
    "call_keys",
    "plain_numbers",
]

KEY_OF: Final[Mapping[str, str]] = {
    "device id": "device",
    "context id": "context",
    "stream id": "stream",
    "registers_per_thread": "registers per thread",
    "shared_mem_dynamic": "shared memory",
}
"""Kineto's keys of arguments of stages, by the keys that PyTorch 2.14.1 writes; other keys are the same."""
WANTED: Final = frozenset(
    {
        "cuda_sync_kind",
        *KEY_OF,
        *(key for field in _fields() for key in field.keys),
    }
)
"""Keys of arguments that columns hold."""


class _Values(NamedTuple):
    """Values of one argument."""

    event: Ints
    """Row of the event."""
    form: Ints
    value: Ints


class _Mentioned(NamedTuple):
    """An event, as far as a message about one of its arguments names it."""

    cat: str
    name: str


def call_keys(
    names: Iterable[str],
) -> frozenset[str]:
    """Return keys of arguments that are kept for calls of host-side communication, if names of events have any."""
    begins = tuple(f"{backend}:" for backend in HOST_BACKENDS)
    if not any(name.startswith(begins) for name in names):
        return frozenset()
    return frozenset(key for field in _call_fields() for key in field.keys)


def plain_numbers(events: PacketEvents, key: str) -> Ints:
    """Return an argument of each row as a number: 0 for one that is none, -1 where there is none."""
    out = np.full(events.columns.shape[1], -1, np.int64)
    if key in events.texts:
        chosen = np.flatnonzero(events.notes.key == events.texts.index(key))
        is_number = events.notes.form[chosen] == scan.NUMBER
        out[events.notes.event[chosen]] = np.where(is_number, events.notes.value[chosen], 0)
    return out


def add_arguments(
    into: Columns,
    events: PacketEvents,
    rows: Ints,
    category: Array,
    first: int,
) -> None:
    """Add the arguments of some events to the columns.

    Args:
        into: the columns.
        events: the events of the file.
        rows: rows of `events` that are rows of the table.
        category: their categories.
        first: number of the first one in the table.
    """
    row_of = np.full(events.columns.shape[1], -1, np.int64)
    row_of[rows] = np.arange(len(rows))
    for key, values in _by_key(events):
        row = row_of[values.event]
        for code in np.unique(category[row[row >= 0]]).tolist():
            name = tuple(into.categories)[code]
            field = _field(name, KEY_OF.get(key, key))
            if field is None:
                continue
            chosen = np.flatnonzero((row >= 0) & (category[row] == code))
            if field in _call_fields():
                chosen = chosen[_is_call(into, row[chosen] + first)]
            chosen_values = _Values(*(column[chosen] for column in values))
            stored = _stored(
                into,
                events,
                chosen_values,
                field,
                _Mentioned(name, key),
            )
            into.store(
                into.complete,
                field.column,
                (row[chosen] + first).astype(np.int32),
                stored,
            )


def _by_key(
    events: PacketEvents,
) -> Iterable[tuple[str, _Values]]:
    """Yield each key with its values in the order of the file."""
    notes = events.notes
    order = np.argsort(
        notes.key.astype(np.uint16) if len(events.texts) < 2**16 else notes.key,
        kind="stable",
    )
    keys, begins = np.unique(notes.key[order], return_index=True)
    for key, positions in zip(
        keys.tolist(),
        np.split(order, begins[1:]),
        strict=bool(len(keys)),
    ):
        yield (
            events.texts[key],
            _Values(
                notes.event[positions],
                notes.form[positions],
                notes.value[positions],
            ),
        )


@cache
def _field(category: str, key: str) -> BulkField | None:
    """Return the field of Kineto's schema for an argument of events of a category."""
    of_category = {field.keys[0]: field for _, field in fields_of(category)}
    if category in ("cpu_op", "user_annotation"):
        of_category |= {field.keys[0]: field for field in _call_fields()}
    return of_category.get(key)


def _is_call(into: Columns, rows: Ints) -> Array:
    """Return which rows of the table are calls of host-side communication."""
    names = list(into.names)
    codes = np.array(into.complete.columns["name"], np.int64)[rows]
    distinct, member = np.unique(codes, return_inverse=True)
    is_call = np.array(
        [names[code].startswith(HOST_CALLS) for code in distinct.tolist()],
        np.bool_,
    )
    return is_call[member.ravel()]


_FITTING: Final = {
    "int64": (scan.NUMBER,),
    "uint64": (scan.NUMBER, scan.UNSIGNED),
    "float64": (scan.FLOAT,),
    "str": (scan.TEXT,),
}
"""Forms of values that a column of each type holds as they are."""


def _stored(
    into: Columns,
    events: PacketEvents,
    values: _Values,
    field: BulkField,
    named: _Mentioned,
) -> Array:
    """Return values as a column holds them."""
    dtype = field.column.dtype
    out = np.empty(
        len(values.event),
        np.int32 if dtype == "str" else dtype,
    )
    fits = np.isin(values.form, _FITTING[dtype])
    if dtype == "str":
        codes, member = np.unique(values.value[fits], return_inverse=True)
        texts = np.array(
            [into.names[events.texts[code]] for code in codes.tolist()],
            np.int32,
        )
        out[fits] = texts[member.ravel()] if len(texts) else 0
    else:
        out[fits] = values.value[fits].view(dtype)
    odd = np.flatnonzero(~fits)
    if len(odd):
        pairs = np.stack([values.form[odd], values.value[odd]])
        distinct, member = np.unique(pairs, axis=1, return_inverse=True)
        objects = [_object(events, *pair) for pair in distinct.T.tolist()]
        if field in _call_fields():
            objects = [json.dumps(value_or_list) for value_or_list in objects]
        out[odd] = typed(
            into,
            objects,
            field,
            [named] * len(objects),
        )[member.ravel()]
    return out


def _object(events: PacketEvents, form: int, value: int) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value as an object."""
    if form == scan.UNSIGNED:
        return value & (2**64 - 1)
    if form == scan.FLOAT:
        number = float(np.array(value, np.int64).view(np.float64))
        return int(number) if number.is_integer() else number
    if form == scan.TEXT:
        return events.texts[value]
    if form == scan.RAW:
        try:
            return argument_of(events.raw(value), {}, {})[1]
        except UnreadableError:
            return None
    return value
