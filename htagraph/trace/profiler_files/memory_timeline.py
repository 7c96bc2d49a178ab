"""The memory timeline that torch.profiler exports: bytes by what they are used for, over time."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.errors import NotATraceError
from htagraph.trace.profiler_files.files import content

__all__ = ["CATEGORIES", "read_memory_timeline", "times_and_sizes"]

Array: TypeAlias = npt.NDArray[Any]
CATEGORIES: Final = (
    "parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd", "unknown",
)  # fmt: skip
"""In the order of the numbers that torch.profiler writes."""
_FIELDS = 4
_Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**50), le=2**50)]  # sums of such numbers are exact
_Category: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=len(CATEGORIES))]


def read_memory_timeline(path: str | Path) -> pd.DataFrame:
    """Return what a device's memory was used for over time, from what ``prof.export_memory_timeline`` wrote.

    Args:
        path: a file ``….raw.json.gz`` (one entry per event) or ``….json`` (times and sizes), gzipped or not.

    Returns:
        One row per moment at which something changed: ``time_ns`` (int64, as in the file; what existed before the
        recording has its first moment), ``time_us`` (float64, since that moment), and the bytes in use afterwards
        (int64): ``parameter_bytes``, ``optimizer_state_bytes``, ``input_bytes``, ``temporary_bytes``,
        ``activation_bytes``, ``gradient_bytes``, ``autograd_bytes``, ``unknown_bytes``, ``total_bytes``.

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: it holds something else.

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
    frame = pd.DataFrame({"time_ns": times, "time_us": (times - times.min(initial=_last(times))) / 1000})
    for number, category in enumerate(CATEGORIES):
        frame[f"{category}_bytes"] = sizes[:, number]
    return frame.assign(total_bytes=sizes.sum(axis=1))


def times_and_sizes(path: str | Path) -> tuple[Array, Array]:
    """Return the moments of changes, ns, and the bytes in use after each by category; see `read_memory_timeline`."""
    times, sizes = _recorded(path)
    began = times[times >= 0]
    return np.where(times < 0, began.min() if len(began) else 0, times), sizes


def _recorded(path: str | Path) -> tuple[Array, Array]:
    try:
        root = msgspec.json.decode(content(path))
        if len(root) == 2 and len(root[0]) == len(root[1]) and (not root[1] or isinstance(root[1][0], list)):
            times, sizes = msgspec.convert(root, tuple[list[int], list[list[_Bytes]]])
            if all(len(each) >= len(CATEGORIES) for each in sizes):
                last = [each[-len(CATEGORIES) :] for each in sizes]
                return np.array(times, np.int64), np.array(last, np.int64).reshape(-1, len(CATEGORIES))
        rows = msgspec.convert(root, list[tuple[int, int, _Bytes, _Category]])
        events = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, _FIELDS)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):  # msgspec's errors are ValueErrors
        msg = f"{path}: no memory timeline: its entries are not [time, action, bytes, category]"
        raise NotATraceError(msg) from None
    return _summed(events)


def _summed(events: Array) -> tuple[Array, Array]:
    """Return the moments and sizes of allocations and frees."""
    last = np.ones(len(events), np.bool_)
    last[:-1] = events[1:, 0] != events[:-1, 0]
    change = np.zeros((len(events), len(CATEGORIES)), np.int64)
    change[np.arange(len(events)), events[:, 3]] = events[:, 2]
    return events[last, 0], np.cumsum(change, axis=0)[last]


def _last(times: Array) -> int:
    return int(times[-1]) if len(times) else 0
