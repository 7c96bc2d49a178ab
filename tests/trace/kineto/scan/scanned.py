"""The compiled scan of a text, as arrays that tests look into."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from htagraph.trace.kineto.scan.events import (
    ARGUMENT_WIDTH,
    FIELDS,
    MAX_KEYS,
    ROW_WIDTH,
    SCANNED,
    key_table,
    scan_events,
)
from htagraph.trace.kineto.scan.grammar import PADDING
from htagraph.trace.kineto.scan.scanner import argument_keys

_FIELDS = key_table([(name, 0) for name in FIELDS])
_ARGUMENTS = key_table([(key.name, key.kind) for key in argument_keys(calls=True)])


class Scan(NamedTuple):
    """What `scan_events` returned and filled."""

    result: int
    rows: Any
    args: Any


def scan(text: str | bytes, *, exact: bool = False, room: int | None = None) -> Scan:
    """Return the scan of a text, with room for so many events and arguments; for all by default."""
    data = text.encode() if isinstance(text, str) else text
    padded = np.frombuffer(data + PADDING, np.uint8)
    size = len(data) + 1 if room is None else room
    rows = np.full((size, ROW_WIDTH), -7, np.int64)
    args = np.full((size + MAX_KEYS, ARGUMENT_WIDTH), -7, np.int64)
    result, events, used = scan_events(
        (padded.ctypes.data, len(data)),
        (_FIELDS.ctypes.data, _ARGUMENTS.ctypes.data),
        (rows.ctypes.data, size),
        (args.ctypes.data, len(args)),
        int(exact),
    )
    assert (rows[events + 1 :] == -7).all()
    return Scan(result, rows[:events], args[:used])


def is_scanned(text: str | bytes) -> bool:
    return scan(text).result == SCANNED
