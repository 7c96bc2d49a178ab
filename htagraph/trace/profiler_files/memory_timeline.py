"""Memory timelines that torch.profiler exports: bytes in use over time, by category."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import NotATraceError
from htagraph.trace.profiler_files.files import MAX_SIZE, content

__all__ = ["CATEGORIES", "read_memory_timeline", "times_and_sizes"]

CATEGORIES: Final = (
    "parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd", "unknown",
)  # fmt: skip
"""Categories of memory, in the order of the numbers that torch.profiler writes."""
_Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=-MAX_SIZE, le=MAX_SIZE)]
_Category: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=len(CATEGORIES))]


def read_memory_timeline(path: str | Path) -> pd.DataFrame:
    """Return a device's memory in use over time by category, from a file of ``prof.export_memory_timeline``.

    Args:
        path: a file ``….raw.json.gz`` (one entry per event) or ``….json`` (times and sizes), gzipped or not.

    Returns:
        One row per change: ``time_ns`` (int64: as in the file; the first recorded time for memory allocated before the
        recording), ``time_us`` (float64: since that first time), and the bytes in use after the change (int64):
        ``parameter_bytes``, ``optimizer_state_bytes``, ``input_bytes``, ``temporary_bytes``,
        ``activation_bytes``, ``gradient_bytes``, ``autograd_bytes``, ``unknown_bytes``, ``total_bytes``.

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: the file is not a memory timeline.

    Example:
        >>> import gzip, json, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "memory.raw.json.gz"
        >>> events = [[-1, 1, 100, 0], [5000, 2, 40, 4], [9000, 4, -40, 4]]
        >>> _ = path.write_bytes(gzip.compress(json.dumps(events).encode()))
        >>> read_memory_timeline(path)[["time_us", "parameter_bytes", "activation_bytes", "total_bytes"]]
           time_us  parameter_bytes  activation_bytes  total_bytes
        0      0.0              100                 0          100
        1      0.0              100                40          140
        2      4.0              100                 0          100

    Source: HTA's memory analysis.
    """
    times, sizes = times_and_sizes(path)
    frame = pd.DataFrame(
        {"time_ns": times, "time_us": (times - times.min(initial=int(times[-1]) if len(times) else 0)) / 1000}
    )
    for number, category in enumerate(CATEGORIES):
        frame[f"{category}_bytes"] = sizes[:, number]
    return frame.assign(total_bytes=sizes.sum(axis=1))


def times_and_sizes(path: str | Path) -> tuple[Array, Array]:
    """Return the times of changes (ns) and the bytes in use after each by category; see `read_memory_timeline`."""
    times, sizes = _recorded(path)
    recorded = times[times >= 0]  # memory that was allocated before the recording has time -1
    return np.where(times < 0, recorded.min() if len(recorded) else 0, times), sizes


def _recorded(path: str | Path) -> tuple[Array, Array]:
    try:
        root = msgspec.json.decode(content(path))
        if len(root) == 2 and len(root[0]) == len(root[1]) and (not root[1] or isinstance(root[1][0], list)):
            times, sizes = msgspec.convert(root, tuple[list[int], list[list[_Bytes]]])
            if all(len(row) >= len(CATEGORIES) for row in sizes):
                last = [row[-len(CATEGORIES) :] for row in sizes]
                return np.array(times, np.int64), np.array(last, np.int64).reshape(-1, len(CATEGORIES))
        rows = msgspec.convert(root, list[tuple[int, int, _Bytes, _Category]])
        events = np.fromiter(chain.from_iterable(rows), np.int64).reshape(len(rows), 4)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):  # msgspec's errors are ValueErrors
        msg = f"{path}: not a memory timeline: its entries are not [time, action, bytes, category]"
        raise NotATraceError(msg) from None
    return _summed(events)


def _summed(events: Array) -> tuple[Array, Array]:
    """Return the times of allocations and frees, and the bytes in use after each by category."""
    last = np.ones(len(events), np.bool_)
    last[:-1] = events[1:, 0] != events[:-1, 0]
    change = np.zeros((len(events), len(CATEGORIES)), np.int64)
    change[np.arange(len(events)), events[:, 3]] = events[:, 2]
    return events[last, 0], np.cumsum(change, axis=0)[last]
