"""Memory timelines and execution traces; the content of any profiler file, its kind, and compressed bytes in files."""

from __future__ import annotations

import gzip
import io
import zlib
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import DamagedTraceError, NotATraceError, TraceError

__all__ = [
    "CATEGORIES", "LISTS", "MAX_BYTES", "MAX_SIZE", "content", "inflated", "kind_of", "read_execution_trace",
    "read_memory_timeline", "times_and_sizes",
]  # fmt: skip

MAX_BYTES = 1 << 30
"""Bytes of content of a file that is read as a whole. Chosen: far beyond the snapshots and timelines of jobs. Doubled,
a hostile file of a megabyte may take 2 GiB."""
MAX_SIZE = 2**50
"""Bytes: the largest piece of memory that a file may name (1 PB). Chosen: no device has more, and int64 sums of up
to 8,000 such sizes are exact. Doubling it halves that number."""

_GZIP = b"\x1f\x8b"  # the first bytes of gzip (RFC 1952)
_GZIP_WINDOW = zlib.MAX_WBITS | 16  # zlib's code for "expect a gzip header"
_PICKLE = b"\x80"  # the first byte of a pickle of protocol 2 and later


def content(path: str | Path) -> bytes:
    """Return the content of a file, gunzipped if it begins as gzip does, whatever its name is.

    A file that cannot be read, is damaged, or has more than `MAX_BYTES`, raises a TraceError.
    """
    try:
        with Path(path).open("rb") as file:
            is_gzip = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            data = (gzip.GzipFile(fileobj=file) if is_gzip else file).read(MAX_BYTES + 1)
    except MemoryError:
        msg = f"{path}: does not fit into memory"
        raise TraceError(msg) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path}: the gzip stream is damaged ({error})"
        raise DamagedTraceError(msg) from error
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error
    if len(data) > MAX_BYTES:
        msg = f"{path}: has more than {MAX_BYTES >> 20:,} MiB of content, the limit for such files"
        raise TraceError(msg)
    return data


def kind_of(path: str | Path) -> Literal["snapshot", "timeline", "trace"]:
    """Return the kind of a profiler file, from how its content begins.

    A pickle is a memory snapshot and a JSON list of lists a memory timeline; anything else counts as a trace, also a
    folder, a pipe and a file that cannot be read: reading it as a trace reports what is wrong.
    """
    if Path(path).exists() and not Path(path).is_file():
        return "trace"  # what is read from a pipe here would be lost
    try:
        with Path(path).open("rb") as file:
            head = file.read(io.DEFAULT_BUFFER_SIZE)
    except (OSError, ValueError):  # ValueError: no path has such characters
        return "trace"
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(_GZIP_WINDOW).decompress(head, io.DEFAULT_BUFFER_SIZE)
        except zlib.error:
            return "trace"
    if head.startswith(_PICKLE):
        return "snapshot"
    return "timeline" if b"".join(head.split()).startswith(b"[[") else "trace"


def inflated(data: bytes, most: int) -> bytes:
    """Return what zlib compressed.

    It raises a ValueError if they end early or would become more, and a zlib.error if zlib did not compress them.

    Example:
        >>> inflated(zlib.compress(b"a" * 9), 9)
        b'aaaaaaaaa'
    """
    stream = zlib.decompressobj()
    raw = stream.decompress(data, most)
    if not stream.eof:
        msg = "the bytes end early, or are too many"
        raise ValueError(msg)
    return raw


_KINDS: Final = {"name": "str", "parent": "int64", "rf_id": "int64", "op_schema": "str"}
LISTS: Final = ("input_shapes", "input_types", "output_shapes", "output_types")
"""Columns of nodes that hold a list each, one entry per argument."""


def read_execution_trace(path: str | Path) -> pd.DataFrame:
    """Return the nodes of an execution trace, as ``torch.profiler.ExecutionTraceObserver`` writes it.

    Args:
        path: the JSON file, gzipped or not; of schema 1.0 or 1.1.

    Returns:
        One row per node, indexed by ``et_node`` (int64, its id), in the order of the file: ``name`` (str), ``parent``
        (int64: id of the enclosing node), ``rf_id`` (int64: the record-function id, 0 for nodes that have none),
        ``op_schema`` (str), ``input_shapes``, ``input_types``, ``output_shapes``, ``output_types`` (object: lists as
        in the file).

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: the file is not an execution trace.

    Example:
        >>> import json, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "et.json"
        >>> node = {"id": 5, "name": "aten::mm", "rf_id": 3, "parent": 1, "op_schema": "aten::mm(Tensor self)",
        ...         "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"], "output_shapes": [], "output_types": []}
        >>> _ = path.write_text(json.dumps({"schema": "1.0.1", "nodes": [node]}))
        >>> read_execution_trace(path)[["name", "rf_id", "input_shapes"]]
                     name  rf_id input_shapes
        et_node
        5        aten::mm      3     [[2, 2]]

    Source: HTA's load_execution_trace, without et_replay.
    """
    try:
        nodes = [_node(raw) for raw in msgspec.json.decode(content(path))["nodes"]]
        columns = {name: [node[name] for node in nodes] for name in (*_KINDS, *LISTS)}
        index = pd.Index([node["id"] for node in nodes], dtype="int64", name="et_node")
        kinds: dict[str, Any] = _KINDS | dict.fromkeys(LISTS, "object")
        frame = pd.DataFrame({name: pd.Series(columns[name], index, dtype=kind) for name, kind in kinds.items()})
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):  # msgspec's too
        msg = f"{path}: not an execution trace (expected: JSON with 'nodes', each with id and name)"
        raise NotATraceError(msg) from None
    return frame


def _node(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a node in the form of schema 1.0; schema 1.1 has ids in ``attrs``, shapes and types beside the values."""
    attrs = {attr["name"]: attr.get("value") for attr in raw.get("attrs") or ()}
    node = {
        "id": int(raw["id"]), "name": str(raw["name"]),
        "parent": int(raw.get("parent", raw.get("ctrl_deps")) or 0),
        "rf_id": int(raw.get("rf_id", attrs.get("rf_id")) or 0),
        "op_schema": str(raw.get("op_schema", attrs.get("op_schema")) or ""),
    }  # fmt: skip
    for side in ("input", "output"):
        values = raw.get(f"{side}s")
        for part in ("shapes", "types"):
            newer = values.get(part) if isinstance(values, dict) else None
            node[f"{side}_{part}"] = raw.get(f"{side}_{part}", newer) or []
    return node


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
